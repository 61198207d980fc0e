"""The checker's judgement of batches, on made-up journals and on made-up responses."""

import json
import random
import types
import unittest

import batches
import checker
from batch_clients import Batch, BatchClients, Delivery
from clients import Clients
from journal import Journal


class MadeUpBatches(unittest.TestCase):
    """Two items, `x` and `y`, of one caller, which were run in one batch and got their outcomes."""

    def setUp(self):
        self.journal = Journal()
        self.at = 1000.0
        for key in "xy":
            self.add("intent", 0, intent=0, record=self.record(key), rule="batch")

    @staticmethod
    def record(key):
        return f"a|/batch|{key}"

    def add(self, kind, after, **fields):
        self.at += after
        self.journal.entries.append({"kind": kind, "at": self.at, **fields})

    def send(self, name="0.0", keys="xy", after=0.1):
        for key in keys:
            self.add("sent", after if key == keys[0] else 0, id=None, record=self.record(key), attempt=name, node=0)

    def run_(self, name="0.0", keys="xy", first=1, outcome="final", status=201, print_="p"):
        for serial, key in enumerate(keys, first):
            self.add(
                "ran", 0.01, serial=serial, id=None, record=self.record(key), attempt=name, print=print_,
                status=status, outcome=outcome, exchange=first,
            )  # fmt: skip
        self.add("responded", 0.01, serial=first)

    def deliver(self, key, word="executed", serial=None, name="0.0", response=None, **fields):
        findings = {"serial": serial, "ran_print": "p", "caller": "a", "response": response or key} if serial else {}
        self.add(
            "delivery", 0.1, intent=0, record=self.record(key), number=0, batch=name, node=0, print="p",
            begun=self.at - 0.2, word=word,
            **{"status": 201, "retryable": False, "phase": "storm", **findings, **fields},
        )  # fmt: skip

    def once(self):
        self.send()
        self.run_()
        self.deliver("x", serial=1)
        self.deliver("y", serial=2)

    def calm(self, x=1, y=2):
        self.add("calm", 0.1)
        for key, serial in (("x", x), ("y", y)):
            self.deliver(key, "replayed", serial, "1.0", phase="calm")

    def ends(self, key, word, **fields):
        self.deliver(key, word, name="1.0", phase="calm", status=409, **fields)

    def rules(self):
        return {rule for rule, _, _ in checker.check(self.journal).violations}


class BatchContract(MadeUpBatches):
    def test_a_batch_and_its_replay_are_all_right(self):
        self.once()
        self.calm()
        self.assertEqual(self.rules(), set())

    def test_an_item_that_ran_again_in_another_batch_is_found(self):
        for outcome in ("final", "lost", "unknown"):
            with self.subTest(outcome):
                self.setUp()
                self.send()
                self.run_(outcome=outcome)
                self.send("2.0", "y", after=5)
                self.run_("2.0", "y", first=3)
                self.calm(y=3)
                self.assertIn(1, self.rules())
                self.assertEqual(self.rules() - {1}, set() if outcome == "final" else {4})

    def test_a_repeated_batch_is_found(self):
        self.send()
        self.run_(outcome="retry")
        self.run_(first=3)
        self.calm(3, 4)
        self.assertEqual(self.rules(), {1})

    def test_an_item_that_is_sent_again_while_its_outcome_is_open_is_found(self):
        self.send()
        self.send("2.0", "y", after=5)
        self.run_("2.0", "y", first=3)
        self.add("calm", 0.1)
        self.ends("x", "outcome_unknown")
        self.deliver("y", "replayed", 3, phase="calm")
        self.assertEqual(self.rules(), {1})

    def test_an_item_that_the_backend_was_too_busy_for_may_run_in_another_batch(self):
        self.send()
        self.run_(outcome="retry", status=503)
        self.send("2.0", "y", after=0.01)
        self.run_("2.0", "y", first=3)
        self.send("3.0", "x", after=0.01)
        self.run_("3.0", "x", first=4)
        self.calm(4, 3)
        self.assertEqual(self.rules(), set())

    def test_a_changed_payload_that_ran_is_found(self):
        self.send()
        self.run_(outcome="retry", print_="q")
        self.send("2.0")
        self.run_("2.0", first=3)
        self.calm(3, 4)
        self.assertEqual(self.rules(), {4})

    def test_the_result_of_another_item_is_found(self):
        self.once()
        self.deliver("y", "replayed", serial=1, name="2.0", response="y")
        self.calm()
        self.assertEqual(self.rules(), {4})

    def test_the_result_of_another_caller_is_found(self):
        self.once()
        self.deliver("y", "replayed", serial=2, name="2.0", caller="b")
        self.calm()
        self.assertEqual(self.rules(), {4})

    def test_two_results_are_found(self):
        self.once()
        self.deliver("y", "replayed", serial=2, name="2.0", response="z")
        self.calm()
        self.assertEqual(self.rules(), {2})

    def test_a_status_without_its_response_is_that_of_the_run(self):
        for status, original, rules in [(500, 500, set()), (500, 404, {2}), (201, 201, {2})]:
            with self.subTest(status=status, original=original):
                self.setUp()
                self.send()
                self.run_(status=status)
                self.calm()
                self.ends("y", "response_not_kept", original=original)
                self.assertEqual(self.rules(), rules)

    def test_a_result_of_a_response_that_proves_nothing_is_found(self):
        self.send()
        self.run_(outcome="unknown")
        self.deliver("y", serial=2)
        self.calm()
        self.assertEqual(self.rules(), {4})

    def test_a_refusal_for_a_changed_payload_that_nobody_sent_is_found(self):
        self.once()
        self.deliver("y", "payload_mismatch", name="2.0")
        self.calm()
        self.assertEqual(self.rules(), {4})

    def test_an_item_that_does_not_end_is_found(self):
        self.once()
        self.calm()
        self.ends("y", "in_flight", retryable=True)
        self.assertEqual(self.rules(), {3})

    def test_an_item_is_held_as_unknown_only_in_doubt(self):
        for outcome, rules in [("retry", {3}), ("final", {3}), ("unknown", set()), ("lost", set())]:
            with self.subTest(outcome):
                self.setUp()
                self.send()
                self.run_(outcome=outcome)
                self.add("calm", 0.1)
                self.ends("x", "outcome_unknown")
                self.ends("y", "outcome_unknown")
                self.assertEqual(self.rules(), rules)

    def test_an_item_that_was_never_sent_and_is_held_as_unknown_is_found(self):
        self.send(keys="x")
        self.run_(keys="x")
        self.add("calm", 0.1)
        self.deliver("x", "replayed", 1, phase="calm")
        self.ends("y", "outcome_unknown")
        self.assertEqual(self.rules(), {3})

    def test_an_outcome_that_was_given_and_lost_is_found(self):
        self.once()
        self.calm()
        self.ends("y", "outcome_unknown")
        self.assertEqual(self.rules(), {5})


class BatchResponses(unittest.TestCase):
    """A client's reading of responses to a batch of two items."""

    def setUp(self):
        self.journal = Journal()
        self.clients = BatchClients(Clients([], self.journal, None))
        batch = types.SimpleNamespace(caller="a", record=lambda key: f"a|/batch|{key}")
        self.delivery = Delivery(batch, "7.0", [batches.order("a", key, False) for key in "xy"], "eur")

    def words(self, elements, label, status=201, around=None):
        body = json.dumps({"results": elements} | (around or {})).encode()
        fields = {"idempotency-status": label, "content-type": "application/json"}
        response = types.SimpleNamespace(status=status, fields=fields, body=body)
        findings = self.clients.findings(response, self.delivery)
        return [each["word"] for each in findings], [entry["kind"] for entry in self.journal.entries]

    @staticmethod
    def result(serial, delivery):
        return {"serial": serial, "print": "p", "caller": "a", "delivery": delivery}

    def test_each_element_is_told_from_the_others(self):
        refusal = {"status": 409, "code": "in_flight", "retryable": True}
        label = "batch; executed=1; replayed=0; refused=1"
        found = self.words([self.result(1, "7.0"), refusal], label, 207)
        self.assertEqual(found, (["executed", "in_flight"], []))

    def test_a_refusal_of_all_items_names_the_outcome_of_each(self):
        problem = {"status": 409, "code": "response_not_kept", "retryable": False, "original_status": 422}
        fields = {"content-type": "application/problem+json"}
        response = types.SimpleNamespace(status=409, fields=fields, body=json.dumps(problem).encode())
        found = self.clients.findings(response, self.delivery)
        self.assertEqual([(each["word"], each["original"]) for each in found], [("response_not_kept", 422)] * 2)

    def test_a_result_too_few_is_found(self):
        _, kinds = self.words([self.result(1, "7.0")], "batch; executed=1; replayed=0; refused=0")
        self.assertEqual(kinds, ["misfit"])

    def test_a_wrong_count_and_a_wrong_status_are_found(self):
        results = [self.result(1, "6.0"), self.result(2, "7.0")]
        for label, status in [("executed=1; replayed=0; refused=1", 201), ("executed=1; replayed=1; refused=0", 207)]:
            with self.subTest(label):
                self.setUp()
                self.assertEqual(self.words(results, f"batch; {label}", status)[1], ["misfit"])

    def test_the_surroundings_of_another_delivery_are_found(self):
        around = {"serial": 1, "caller": "a", "delivery": "6.0"}
        results = [self.result(1, "6.0"), self.result(2, "6.0")]
        _, kinds = self.words(results, "batch; executed=0; replayed=2; refused=0", around=around)
        self.assertEqual(kinds, ["misfit"])

    def test_a_response_to_all_items_has_a_run_for_each(self):
        body = json.dumps({"serial": 3, "print": "", "caller": "a", "batch": [["x", 3, "p"]]}).encode()
        response = types.SimpleNamespace(status=500, fields={"idempotency-status": "executed"}, body=body)
        findings = self.clients.findings(response, self.delivery)
        self.assertEqual([each["serial"] for each in findings], [3, -1])


class Overlap(unittest.TestCase):
    def test_batches_of_a_pool_share_items(self):
        pool = [Batch(number, number, random.Random(number)) for number in range(4)]
        keys = [key for batch in pool for key in batch.keys]
        self.assertLess(len(set(keys)), len(keys))
