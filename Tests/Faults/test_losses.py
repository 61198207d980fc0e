"""The checker's judgement of a store of several servers, on made-up journals, and the faults of such a store."""

import unittest

import checker
import rig
import store_faults
import topology
from made_up import MadeUp


class Losses(MadeUp):
    """One intent that ran twice, as a failover between the runs may explain."""

    def store(self, replicas):
        self.add("store", 0.1, topology="sentinel", replicas=replicas)

    def count(self, failovers=0, suspects=0, superseded=0, node=0):
        self.add("counted", 0, node=node, failovers=failovers, suspects=suspects, superseded=superseded)

    def gap(self, span=1.0, promoted=True):
        self.add("gap", 0.1, since=self.at - span, slots=[0, 16383], promoted=promoted)

    def twice(self, replicas=0, promoted=True, is_counted=True, pause=0.0, span=1.0):
        """A run, a gap that ends `pause` later, another run that knows nothing of the first one."""
        self.store(replicas)
        self.count()
        self.once()
        self.add("responded", 0.01, serial=1)
        self.at += pause
        self.gap(span, promoted)
        if is_counted:
            self.count(failovers=1)
        self.send(1, after=1)
        self.run_(2, 1)
        self.deliver(serial=2, response="y")
        self.calm(serial=2, response="y")

    def report(self):
        return checker.check(self.journal)

    def test_a_loss_at_a_failover_is_told_from_a_violation(self):
        self.twice()
        self.assertEqual(self.rules(), set())
        self.assertEqual(self.report().counts["lost"], 1)
        self.assertEqual(sum(self.report().excused.values()), 1)

    def test_with_replicas_nothing_may_be_lost(self):
        self.twice(replicas=1)
        self.assertEqual(self.rules(), {1, 2})

    def test_without_a_promotion_nothing_may_be_lost(self):
        self.twice(promoted=False)
        self.assertEqual(self.rules(), {1, 2})

    def test_what_was_at_the_replica_may_not_be_lost(self):
        self.twice(pause=9, span=1)
        self.assertEqual(self.rules(), {1, 2})

    def test_another_slots_failover_explains_nothing(self):
        self.twice()
        gap = next(entry for entry in self.journal.entries if entry["kind"] == "gap")
        gap["slots"] = [0, 0]
        self.assertEqual(self.rules(), {1, 2})

    def test_a_loss_that_no_node_has_counted_is_found(self):
        self.twice(is_counted=False)
        self.assertEqual(self.rules(), {7})

    def test_a_loss_that_nobody_lived_through_is_counted_by_nobody(self):
        self.twice(is_counted=False)
        self.journal.entries.insert(2, {"kind": "fault", "at": self.at - 2, "name": "kill", "of": "node0"})
        self.assertEqual(self.rules(), set())

    def lost_live_claim(self, **figures):
        self.store(0)
        self.count()
        self.send()
        self.run_(outcome="lost")
        self.gap(0.2)
        self.count(failovers=1)
        self.send(1, after=0.1)
        self.run_(2, 1)
        self.deliver(serial=2)
        self.count(failovers=1, **figures)
        self.calm(serial=2)

    def test_a_live_claim_that_was_lost_in_silence_is_found(self):
        for figures, rules in [({}, {7}), ({"suspects": 1}, set()), ({"superseded": 1}, set())]:
            with self.subTest(figures):
                self.setUp()
                self.lost_live_claim(**figures)
                self.assertEqual(self.rules(), rules)

    def test_with_replicas_a_suspect_claim_is_found(self):
        self.store(1)
        self.once()
        self.count(suspects=1)
        self.calm()
        self.assertEqual(self.rules(), {7})

    def test_what_was_given_back_at_the_lost_master_may_be_unknown(self):
        for promoted, rules in [(True, set()), (False, {3})]:
            with self.subTest(promoted):
                self.setUp()
                self.store(1)
                self.send()
                self.run_(outcome="retry")
                self.add("responded", 0.1, serial=1)
                self.gap(0.2, promoted)
                self.calm(word="outcome_unknown", serial=None, status=409)
                self.assertEqual(self.rules(), rules)

    def test_promotions_without_changes_are_counted(self):
        self.store(1)
        self.once()
        for changes in (3, 4):
            self.add("fault", 0.1, name="promoted without changes", of="redis0-0", changes=changes)
        self.calm()
        self.assertEqual(self.rules(), set())
        counts = self.report().counts
        self.assertEqual((counts["promotions without changes"], counts["changes lacked"]), (2, 7))


class Storms(unittest.TestCase):
    def test_mixed_cuts_the_replication_whatever_copies_are_demanded(self):
        for kind in topology.KINDS:
            for replicas in (0, 1):
                with self.subTest(kind, replicas=replicas):
                    self.assertIn(store_faults.cut_replication, rig.storm("mixed", 2, (kind, replicas)))
