"""Journals that are made up, for the tests of the checker."""

import unittest

import checker
from journal import Journal


class MadeUp(unittest.TestCase):
    """A made-up journal about one intent under rule `hold`."""

    def setUp(self):
        self.journal = Journal()
        self.at = 1000.0
        self.add("intent", 0, intent=0, record="a|/hold|k", rule="hold")

    def add(self, kind, after, **fields):
        self.at += after
        self.journal.entries.append({"kind": kind, "at": self.at, **fields})

    def send(self, attempt=1, after=0.1):
        self.add("sent", after, id="i", record="a|/hold|k", attempt=attempt, node=0)

    def run_(self, serial=1, attempt=1, outcome="final", print_="p", record="a|/hold|k", after=0.01):
        self.add(
            "ran", after, serial=serial, id="i", record=record, attempt=attempt, print=print_, status=201,
            outcome=outcome,
        )  # fmt: skip

    def deliver(self, word="executed", serial=1, print_="p", response="x", caller="a", **fields):
        findings = {"serial": serial, "ran_print": "p", "caller": caller, "response": response} if serial else {}
        if "taken" in fields:
            findings = {"response": response}
        self.add(
            "delivery", 0.1, intent=0, record="a|/hold|k", number=0, node=0, print=print_, begun=self.at - 0.2,
            word=word, **{"status": 201, "retryable": False, "phase": "storm", **findings, **fields},
        )  # fmt: skip

    def once(self):
        self.send()
        self.run_()
        self.deliver()

    def calm(self, **fields):
        self.add("calm", 0.1)
        self.deliver(**{"word": "replayed", "phase": "calm", **fields})

    def rules(self):
        return {rule for rule, _, _ in checker.check(self.journal).violations}
