"""Reads a journal and reports the violations of the contract in it.

It knows the contract, and nothing of Semel's implementation. The contract's exceptions are excused by the faults that
the journal holds, each kind of excuse counted, so that a run which excuses much shows it.
"""

import collections

import settings
from losses import Losses
from records import Record, Report
from stalls import Stalls

# The maximum delay between an event at one end and its observation at the other, in seconds, on a busy machine.
SLACK = 0.15
# After a forget, in seconds: the time until which it may still be executed if it had no response, and the time until
# which a node that was cut off or stood still may replay from its cache.
FORGET_LATE = 6
CACHE_LATE = 4
# The time, in seconds, for which a response is certainly awaited. After its time-out a batch awaits only results.
HEARD = settings.RESPONSE_TIMEOUT + settings.SETTLE - SLACK
HEARD_OF_BATCH = settings.RESPONSE_TIMEOUT - SLACK


class Checker:
    def __init__(self, journal):
        self.report = Report()
        self.records = {}
        self.ids = {}
        self.responded = {}
        self.lost = set()
        self.exchanges = collections.defaultdict(list)  # The runs of each batch, by the first.
        self.stalls = Stalls()
        self.faults = collections.defaultdict(list)
        self.starts = collections.defaultdict(list)  # Of each node, the beginning and the end of each start.
        self.forgets = collections.defaultdict(list)
        self.serials = {}
        self.calm_at = None
        self.losses = Losses()
        for entry in journal.entries:
            getattr(self, "read_" + entry["kind"])(entry)

    def read_intent(self, entry):
        self.records[entry["record"]] = Record(entry["record"], entry["rule"])

    def read_delivery(self, entry):
        self.records[entry["record"]].deliveries.append(entry)

    def read_sent(self, entry):
        self.records[entry["record"]].sent.append(entry)

    def read_refused(self, entry):
        self.records[entry["record"]].refused.append(entry)

    def read_ran(self, entry):
        self.records[entry["record"]].ran.append(entry)
        self.serials[entry["serial"]] = entry
        if "exchange" in entry:
            return self.exchanges[entry["exchange"]].append(entry["serial"])
        other = self.ids.setdefault(entry["id"], entry["record"])
        if other != entry["record"]:
            self.report.violation(4, entry["record"], f"its id is that of {other}, too")
        return None

    def runs_of(self, exchange):
        return self.exchanges.get(exchange, [exchange])

    def read_responded(self, entry):
        self.responded |= dict.fromkeys(self.runs_of(entry["serial"]), entry["at"])

    def read_lost(self, entry):
        self.lost.update(self.runs_of(entry["serial"]))

    def read_misfit(self, entry):
        self.report.violation(8, entry["record"], entry["text"])

    def read_fault(self, entry):
        self.faults[entry["name"]].append(entry["at"])
        if entry["name"] == "starts":
            self.starts[entry["of"]].append((entry["at"], float("inf")))
        elif entry["name"] == "started" and self.starts[entry["of"]]:
            begun, _ = self.starts[entry["of"]].pop()
            self.starts[entry["of"]].append((begun, entry["at"]))
        self.losses.read_fault(entry)
        if entry["name"] == "did not drain":
            self.report.violation(3, entry["of"], "did not end within its grace after SIGTERM")

    def read_forgotten(self, entry):
        self.forgets[entry["record"]].append(entry)

    def read_stall(self, entry):
        self.stalls.entries.append(entry)

    def read_store(self, entry):
        self.losses.topology, self.losses.replicas = entry["topology"], entry["replicas"]

    def read_gap(self, entry):
        self.losses.gaps.append(entry)

    def read_counted(self, entry):
        self.losses.read_counted(entry)

    def read_calm(self, entry):
        self.calm_at = entry["at"]

    def happened(self, names, begun, at):
        return any(begun <= moment <= at for name in names for moment in self.faults[name])

    def check(self):
        wipes = list(zip(self.faults["wipe"], self.faults["wiped"]))
        for record in self.records.values():
            if record.deliveries:
                self.check_record(record, wipes)
        self.count()
        self.losses.end(self.report)
        return self.report

    def check_record(self, record, wipes):
        gaps = self.losses.of(record)
        whole = self.judged(record, wipes)
        if not gaps or not whole.violations:
            self.report.violations += whole.violations
            self.report.excused += whole.excused
            return
        self.losses.check_loss(record, gaps, self.responded, self.report)
        self.report.violations += self.judged(record, wipes, [(gap["since"], gap["at"]) for gap in gaps]).violations

    def judged(self, record, wipes, losses=()):
        """Returns the report on one record, whose writes of some times may be lost."""
        report, self.report = self.report, Report()
        self.check_forgotten(record, wipes, losses)
        for life in self.lives(record, [*wipes, *losses]):
            self.check_runs(life)
            self.check_responses(life)
            if life.is_item:
                self.check_item(life)
            self.check_end(life)
        report, self.report = self.report, report
        return report

    def lives(self, record, wipes):
        """The record's parts between the moments at which the store was emptied, or the record forgotten.

        A request that is under way at such a moment may run again: a store or an operator that forgets is outside of
        Semel's guarantee. The part that begins there is then left out, and counted.
        """
        begun, at = record.span
        wipes = self.merged([*wipes, *map(self.edge, self.forgets[record.name])])
        edges = [wipe for wipe in wipes if begun - settings.LONGEST_FLIGHT < wipe[1] and wipe[0] < at]
        if not edges:
            return [record]
        lives, start, is_clean = [], float("-inf"), True
        for fell, rose in [*edges, (float("inf"), float("inf"))]:
            life = record.part(start, fell)
            if life.deliveries and is_clean:
                lives.append(life)
            elif life.deliveries:
                self.report.excused["under way when the store, or an operator, forgot"] += 1
                self.check_ended(life)
            is_clean = record.is_quiet(fell - settings.LONGEST_FLIGHT, rose)
            start = rose
        return lives

    @staticmethod
    def edge(forget):
        """When a record may have been forgotten; without a clear response, also later."""
        return forget["begun"], forget["at"] + (SLACK if forget["status"] in (200, 404) else FORGET_LATE)

    @staticmethod
    def merged(edges):
        merged = []
        for fell, rose in sorted(edges):
            if merged and fell <= merged[-1][1]:
                merged[-1] = merged[-1][0], max(rose, merged[-1][1])
            else:
                merged.append((fell, rose))
        return merged

    # 6: what was forgotten

    def check_forgotten(self, record, wipes, losses):
        """A delivery after a forget gets no outcome of a run that was sent before it."""
        for forget in self.forgets[record.name]:
            is_lost = any(fell <= forget["at"] and forget["begun"] <= rose for fell, rose in losses)
            if forget["status"] != 200 or is_lost:
                continue
            for each in record.outcomes():
                ran = self.serials.get(each.get("serial"))
                if ran is None or each["begun"] <= forget["at"] + SLACK:
                    continue
                sent = self.sent_at(record, ran)
                if any(self.is_fence_wiped(forget, sent, each, wipe) for wipe in wipes):
                    self.report.excused["recorded after a forget whose fence went with the store's content"] += 1
                elif sent < forget["begun"]:
                    self.check_late_outcome(record, forget, each)

    @staticmethod
    def is_fence_wiped(forget, sent, outcome, wipe):
        """Whether the store was emptied after a forget and before this outcome, when a run that was sent before the
        forget may have been under way.

        An owner that finds no record makes it anew, and what would have prevented this was emptied, too.
        """
        fell, rose = wipe
        is_between = forget["begun"] <= rose and fell <= outcome["at"]
        return sent < forget["begun"] and is_between and fell - settings.LONGEST_FLIGHT < sent

    def check_late_outcome(self, record, forget, outcome):
        cuts = [name for name in self.faults if name.startswith("redis relay")]
        names = [*cuts, "freeze", "thaw", "pause", "kill", "reload", "drain"]
        is_soon = outcome["begun"] < forget["at"] + CACHE_LATE
        if is_soon and self.happened(names, forget["begun"] - CACHE_LATE, outcome["at"]):
            self.report.excused["replayed from a cache that the forget had not reached"] += 1
        else:
            self.report.violation(6, record.name, f"run {outcome['serial']} was replayed after it had been forgotten")

    @staticmethod
    def sent_at(record, ran):
        sendings = [s["at"] for s in record.sent if s["attempt"] == ran["attempt"] and s["at"] <= ran["at"]]
        return sendings[-1] if sendings else float("inf")

    # 1 and 4: what ran

    def check_runs(self, record):
        prints = {ran["print"] for ran in record.ran if ran["outcome"] != "rejected"}
        if len(prints) > 1:
            self.report.violation(4, record.name, "ran with two payloads")
        if record.rule != "retry":
            self.check_held(record)
        for before, after in zip(record.sent, record.sent[1:]):
            self.check_successor(record, before, after)
        for sent, end in self.sendings(record):
            if self.refusal(record, sent, end) and self.runs(record, sent, end):
                self.report.violation(1, record.name, f"attempt {sent['attempt']}: refused, and ran")
        sendings = collections.Counter(sent["attempt"] for sent in record.sent)
        runs = collections.Counter(ran["attempt"] for ran in record.ran)
        for attempt, count in runs.items():
            if count > sendings[attempt]:
                self.report.violation(1, record.name, f"attempt {attempt}: sent {sendings[attempt]}, ran {count} times")

    def check_held(self, record):
        """After a run that may have had an effect there is no other."""
        for before, after in zip(record.ran, record.ran[1:]):
            if before["outcome"] not in ("retry", "rejected"):
                self.report.violation(
                    1,
                    record.name,
                    f"ran as {after['serial']} after {before['serial']} had ended as {before['outcome']}",
                )

    def check_successor(self, record, before, after):
        """Attempts grow, and the next begins only when the one before is over."""
        runs = self.runs(record, before, after["at"])
        # A record that was only ever rejected is deleted, and its attempts begin anew.
        was_deleted = any(ran["outcome"] == "rejected" for ran in runs)
        if not record.is_item and after["attempt"] <= before["attempt"] and not was_deleted:
            self.report.violation(
                1, record.name, f"attempt {after['attempt']} was sent after attempt {before['attempt']}"
            )
        ended = self.refusal(record, before, after["at"]) or any(
            ran["outcome"] in ("retry", "rejected") and self.responded.get(ran["serial"], after["at"]) < after["at"]
            for ran in runs
        )
        gap = after["at"] - before["at"]
        # No attempt of an item takes over another: none may be sent after one that had not ended.
        if ended or (not record.is_item and gap >= settings.SETTLE - 0.01):
            return
        if not record.is_item and self.stalls.hides_pause(before, after):
            self.report.excused["seen late, since the harness stood still"] += 1
        elif not record.is_item and self.is_new_to_clock(before, after):
            self.report.excused["sent by a process that had not known Redis' clock before it was set"] += 1
        else:
            self.report.violation(
                1, record.name, f"attempt {after['attempt']} was sent {gap:.3f} s after one that was not over"
            )

    def is_new_to_clock(self, before, after):
        """Whether the clock was set between two sendings, and the second one's process began about then: it could not
        know that the first one was younger than it seemed, which is a limit that the contract states."""
        steps = [step for step in self.faults["clock stepped"] if before["at"] <= step <= after["at"]]
        starts = self.starts[f"node{after['node']}"]
        return any(begun <= after["at"] and step - SLACK <= ended for step in steps for begun, ended in starts)

    # 2 and 4: the outcomes that clients got

    def check_responses(self, record):
        outcomes = record.outcomes()
        if len({each["response"] for each in outcomes}) > 1:
            found = {(each.get("serial"), each["response"]) for each in outcomes}
            self.report.violation(2, record.name, f"got two outcomes: {sorted(found)}")
        for each in outcomes:
            if "taken" in each:
                text = f"got for an outcome that a duplicate of run {each['taken']} was refused"
                self.report.violation(2, record.name, text)
        for each in record.deliveries:
            if "serial" not in each:
                continue
            ran = self.serials.get(each["serial"])
            if ran is None or ran["record"] != record.name or not record.name.startswith(each["caller"] + "|"):
                self.report.violation(4, record.name, f"got the outcome of run {each['serial']}, which is another's")
            elif ran["print"] != each["print"]:
                self.report.violation(4, record.name, f"run {each['serial']} had another payload than its delivery")

    def check_item(self, record):
        """Results are certain. Of a response to all items one has the status. Only a changed payload is refused."""
        runs = [self.serials[each["serial"]] for each in record.outcomes() if each["serial"] in self.serials]
        outcomes = {ran["status"] for ran in runs}
        for ran in runs:
            if ran["outcome"] != "final":
                text = f"got a result of run {ran['serial']}, of which nothing proves that it is its own"
                self.report.violation(4, record.name, text)
        for each in record.deliveries:
            if each["word"] == "response_not_kept":
                ended = [ran for ran in record.ran if ran["outcome"] == "final" and ran["status"] == each["original"]]
                if not ended or each["original"] == 201 or outcomes - {each["original"]}:
                    self.report.violation(2, record.name, f"got status {each['original']} for an outcome")
            elif each["word"] == "payload_mismatch" and len(self.payloads(record)) == 1:
                self.report.violation(4, record.name, "was refused for a changed payload, of which there is one")

    @staticmethod
    def payloads(record):
        """Those that were delivered, or ran: of a delivery that ended after a forget only its run is here."""
        return {each["print"] for each in [*record.deliveries, *record.ran] if each.get("print")}

    # 3 and 5: how it ended

    def check_end(self, record):
        last = record.last()
        if last is None:
            return
        outcomes = [each for each in record.outcomes() if each["phase"] == "storm"]
        if last["word"] in ("executed", "replayed") or (record.is_item and last["word"] == "response_not_kept"):
            return
        if last["word"] == "response_not_kept" and self.was_cut_short(record, last):
            return
        if last["word"] != "outcome_unknown" or last["retryable"]:
            self.report.violation(3, record.name, f"did not end: {last['status']} {last['word']}")
        elif outcomes:
            self.check_lost(record, outcomes)
        elif record.rule in ("retry", "ask"):
            self.report.violation(3, record.name, f"is held as unknown, although its rule is {record.rule}")
        elif not self.is_in_doubt(record):
            self.check_without_doubt(record)

    @staticmethod
    def was_cut_short(record, last):
        """A response of this status ended before it was whole, so that only the status is recorded: the backend ended it, or a
        relay closed the connection, and then nobody has had the response."""
        had = any(each["word"] in ("executed", "replayed") for each in record.deliveries)
        endings = {"lost"} if had else {"lost", "final"}
        return any(ran["outcome"] in endings and ran["status"] == last.get("original") for ran in record.ran)

    def check_ended(self, record):
        last = record.last()
        if last and last["retryable"]:
            self.report.violation(3, record.name, f"did not end: {last['status']} {last['word']}")

    def check_lost(self, record, outcomes):
        """An outcome may be given unstored only if the store had failed, and only a node's end may lose it."""
        at = outcomes[0]["at"]
        ended = self.happened(["kill", "drain"], at - 4, at + 30)
        if self.has_store_failed(at) and ended:
            self.report.excused["an outcome given while the store was down, and its node ended"] += 1
        else:
            self.report.violation(5, record.name, "got an outcome that is now unknown")

    def has_store_failed(self, at):
        names = [name for name in self.faults if name.startswith("redis relay")]
        names += ["freeze", "pause", "kill", "disk full"]
        return self.happened(names, at - 4, at + SLACK) or self.losses.is_gap(at - 4, at + SLACK)

    def is_in_doubt(self, record):
        """Whether anything was sent whose response, while it was awaited, did not allow a re-send.

        An item is not in doubt after an outcome, either: its result is found among the others.
        """
        known = ("retry", "rejected", "final") if record.is_item else ("retry", "rejected")
        heard = HEARD_OF_BATCH if record.is_item else HEARD
        return not all(
            self.refusal(record, sent, min(end, sent["at"] + heard))
            or any(
                ran["outcome"] in known and self.is_heard(ran, sent["at"] + heard)
                for ran in self.runs(record, sent, end)
            )
            for sent, end in self.sendings(record)
        )

    def is_heard(self, ran, limit):
        is_lost = ran["serial"] in self.lost
        return not is_lost and self.responded.get(ran["serial"], float("inf")) < limit

    @staticmethod
    def sendings(record):
        """Returns each sending with the time at which the next began."""
        return zip(record.sent, [sent["at"] for sent in record.sent[1:]] + [float("inf")])

    @staticmethod
    def refusal(record, sent, end):
        """Whether the backend has stated, before the next sending, that it did not take this one."""
        return any(
            each["attempt"] == sent["attempt"] and sent["at"] <= each["at"] < end for each in record.refused
        )

    @staticmethod
    def runs(record, sent, end):
        """Returns the runs of one sending, before the next."""
        return [ran for ran in record.ran if ran["attempt"] == sent["attempt"] and sent["at"] <= ran["at"] < end]

    def check_without_doubt(self, record):
        begun, at = record.span
        at = min(at, self.calm_at)
        cuts = [name for name in self.faults if name.startswith(("backend relay", "backend: "))]
        if self.happened(["kill", "drain"], begun - SLACK, at):
            self.report.excused["its node ended before it had sent it, or had the response"] += 1
        elif self.losses.is_gap(begun - SLACK, at, promoted=True):
            self.report.excused["given back at a Redis from which another took over"] += 1
        elif self.losses.topology and self.happened(["clock stepped"], begun - SLACK, at):
            self.report.excused["given back to servers whose clocks had been set, so that they had lost one another"] += 1
        elif self.happened(cuts, begun - SLACK, at):
            self.report.excused["cut off before it had reached the relay, or on the way back"] += 1
        elif record.is_item and record.sent and self.happened(["freeze"], begun - SLACK, at):
            self.report.excused["a batch whose node stood still past its time-out"] += 1
        elif any(each["status"] not in (200, 404) for each in self.forgets[record.name]):
            self.report.excused["forgotten without a clear response, so that what was in doubt before may be there"] += 1
        elif self.stalls.delays(record.sent, HEARD):
            self.report.excused["its response passed on late, since the harness stood still"] += 1
        else:
            self.report.violation(3, record.name, "is held as unknown, and nothing in it is in doubt")

    def count(self):
        deliveries = [each for record in self.records.values() for each in record.deliveries]
        last = [record.last() for record in self.records.values()]
        self.report.counts = {
            "intents": len(self.records),
            "deliveries": len(deliveries),
            "executions": len(self.serials),
            "replays": sum(each["word"] == "replayed" for each in deliveries),
            "unknown": sum(each is not None and each["word"] == "outcome_unknown" for each in last),
            "faults": sum(len(moments) for moments in self.faults.values()),
            "items": sum(record.is_item for record in self.records.values()),
            "batches": len({each["batch"] for each in deliveries if "batch" in each}),
        }


def check(journal):
    return Checker(journal).check()
