"""A journal's entries about one record, and the report on a journal."""

import collections
import dataclasses

import batches


@dataclasses.dataclass
class Report:
    violations: list = dataclasses.field(default_factory=list)
    excused: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    counts: dict = dataclasses.field(default_factory=dict)

    def violation(self, rule, record, text):
        self.violations.append((rule, record, text))


class Record:
    """The journal's entries about one record."""

    def __init__(self, name, rule):
        self.name = name
        self.rule = rule
        self.sent = []
        self.refused = []
        self.ran = []
        self.deliveries = []

    @property
    def is_item(self):
        """Whether it is that of a batch's item, whose attempts have no numbers but the names of their deliveries."""
        return self.rule == batches.RULE

    @property
    def span(self):
        begun = min(delivery["begun"] for delivery in self.deliveries)
        return begun, max(delivery["at"] for delivery in self.deliveries)

    def outcomes(self):
        return [each for each in self.deliveries if each["word"] in ("executed", "replayed")]

    def part(self, start, end):
        part = Record(self.name, self.rule)
        part.sent = [each for each in self.sent if start <= each["at"] < end]
        part.refused = [each for each in self.refused if start <= each["at"] < end]
        part.ran = [each for each in self.ran if start <= each["at"] < end]
        part.deliveries = [each for each in self.deliveries if start <= each["begun"] and each["at"] < end]
        return part

    def is_quiet(self, start, end):
        return not any(each["begun"] < end and start < each["at"] for each in self.deliveries) and not any(
            start < each["at"] < end for each in [*self.sent, *self.ran]
        )

    def last(self):
        calm = [each for each in self.deliveries if each["phase"] == "calm"]
        return calm[-1] if calm else None
