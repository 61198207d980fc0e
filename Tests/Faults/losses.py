"""The writes that a store of several servers may lose, and the counts that have to show it.

A replica that takes over may lack the writes of a gap, where Semel demands no replicas. What is lost for that reason is
told from a violation: the record was in use during such a gap, and its parts before and after keep the contract. And a
loss is never silent: a node that lived through it has counted the failover, and an owner that lost a live claim has
counted the claim as suspect or superseded. Where Semel demands replicas, nothing may be lost, and no claim suspect.
"""

import binascii
import collections

import settings

# The time, in seconds, until a node on a busy machine has counted what it met.
COUNTED_LATE = 6
DISTURBING = ("kill", "drain", "freeze")
SLOTS = 16384


def slot_of(id_):
    """The slot of a record in a cluster."""
    return binascii.crc_hqx(id_.encode(), 0) % SLOTS


class Losses:
    def __init__(self):
        self.topology = None
        self.replicas = None
        self.gaps = []
        self.moves = collections.defaultdict(list)  # Of each slot that was moved, when each move began and ended.
        self.counted = collections.defaultdict(list)
        self.disturbed = collections.defaultdict(list)
        self.lost = 0
        self.lacking = []  # Of each promotion after a cut of the replication, the number of changes that the server lacked.

    def read_fault(self, entry):
        if entry["name"] in ("slot moves", "slot moved"):
            self.moves[entry["slot"]].append(entry["at"])
        elif entry["name"] == "promoted without changes":
            self.lacking.append(entry["changes"])
        elif entry["name"] in (*DISTURBING, "started", "thaw"):
            self.disturbed[entry["of"]].append(entry["at"])

    def read_counted(self, entry):
        self.counted[entry["node"]].append(entry)

    def of(self, record):
        """The gaps whose writes may be lost, and in which the record was in use."""
        # None of a batch's item, whose id nobody knows.
        slots = {slot_of(entry["id"]) for entry in [*record.sent, *record.ran] if entry["id"]}
        return [
            gap
            for gap in self.gaps
            if gap["promoted"]
            and not record.is_quiet(gap["since"] - settings.LONGEST_FLIGHT, gap["at"])
            and self.may_lose(gap, slots)
        ]

    def may_lose(self, gap, slots):
        """Whether records of these slots may be lost. With replicas only those of a slot on its way: a master that
        takes them over does not wait for its replicas."""
        if self.replicas:
            return any(self.is_moving(slot, gap) for slot in slots or list(self.moves))
        first, last = gap["slots"]
        return not slots or any(first <= slot <= last or slot in self.moves for slot in slots)

    def is_moving(self, slot, gap):
        times = self.moves.get(slot, [])
        ends = [*times[1::2], float("inf")]
        return any(begun <= gap["at"] and gap["since"] <= end for begun, end in zip(times[::2], ends))

    def is_gap(self, begun, at, promoted=False):
        return any(
            gap["since"] <= at and begun <= gap["at"] and (gap["promoted"] or not promoted) for gap in self.gaps
        )

    def check_loss(self, record, gaps, responded, report):
        """A loss, which somebody must have counted."""
        self.lost += 1
        report.excused["written shortly before a Redis took over that lacked it"] += 1
        if not any(self.is_failover_counted(gap) for gap in gaps):
            report.violation(7, record.name, "lost by a failover that no node has counted")
        for before, after in zip(record.sent, record.sent[1:]):
            if record.is_item or after["attempt"] <= before["attempt"]:
                self.check_live(record, gaps, responded, report, before, after)

    def check_live(self, record, gaps, responded, report, before, after):
        """Of an owner that still waited for its response when another got the record, something is counted."""
        runs = [ran for ran in record.ran if before["at"] <= ran["at"] < after["at"]]
        is_over = any(responded.get(ran["serial"], float("inf")) <= after["at"] for ran in runs)
        is_over = is_over or not runs or after["at"] - before["at"] > settings.RESPONSE_TIMEOUT
        is_in_gap = any(gap["since"] <= after["at"] and before["at"] <= gap["at"] for gap in gaps)
        end = after["at"] + settings.LONGEST_FLIGHT + COUNTED_LATE
        if is_over or not is_in_gap or self.is_disturbed(before["node"], before["at"], end):
            return
        if not any(self.rises(before["node"], word, before["at"], end) for word in ("suspects", "superseded")):
            report.violation(7, record.name, f"attempt {before['attempt']} lost its claim, and did not count it")

    def is_failover_counted(self, gap):
        """Also where no node lived through it: none can have counted it."""
        end = gap["at"] + COUNTED_LATE
        nodes = [node for node in self.counted if not self.is_disturbed(node, gap["since"] - 1, end)]
        return not nodes or any(self.rises(node, "failovers", gap["since"], end) for node in self.counted)

    def is_disturbed(self, node, begun, at):
        """Whether the node, since its restart before that time, was killed, ended or frozen by then."""
        return any(begun - settings.LEASE * 3 <= moment <= at for moment in self.disturbed[f"node{node}"])

    def rises(self, node, word, begun, at):
        entries = self.counted[node]
        for before, after in zip([None, *entries], entries):
            is_restart = before is None or after[word] < before[word]
            if begun <= after["at"] <= at and after[word] > (0 if is_restart else before[word]):
                return True
        return False

    def total(self, word):
        total = 0
        for entries in self.counted.values():
            for before, after in zip([None, *entries], entries):
                is_restart = before is None or after[word] < before[word]
                total += after[word] - (0 if is_restart else before[word])
        return total

    def end(self, report):
        if self.topology is None:
            return
        report.counts |= {"lost": self.lost} | {word: self.total(word) for word in ("failovers", "suspects")}
        report.counts |= {"promotions without changes": len(self.lacking), "changes lacked": sum(self.lacking)}
        if self.replicas and report.counts["suspects"] > self.lost:
            text = f"{report.counts['suspects']} claims were missing, although replicas had to have them"
            report.violation(7, "the store", text)
