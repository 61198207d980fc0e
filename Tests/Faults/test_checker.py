"""The checker has teeth: on made-up journals, and on Semel with a bug planted in what passes between its parts.

python3 Tests/Faults/test_checker.py [BINARY]
"""

import asyncio
import sys
import tempfile
import unittest

import checker
from made_up import MadeUp
from rig import Rig, storm
from settings import LONGEST_FLIGHT
from test_batches import BatchContract, BatchResponses, Overlap  # Their tests are found here.
from test_losses import Losses, Storms  # Their tests are found here.

# The bug, faults that Semel without it withstands, how many intents it takes until it mostly shows several times over,
# the rules that it breaks, and the store, if that is not one Redis. Chance decides: a run in which a bug did not show
# is repeated, ROUNDS times at most.
PLANTED = [
    ("no-owner-check", "slow, and frozen", 1500, {2}, None),
    ("lease-as-ttl", "node killed", 600, {1, 2}, None),
    ("release-on-error", "backend", 400, {1, 2}, None),
    ("no-deadline", "busy, and haunted", 1000, {3}, None),
    ("fence-deleted", "slow, rejected, and forgotten", 1500, {6}, None),
    ("re-send", "backend", 400, {1}, None),
    ("retry-after-unknown", "backend", 400, {1}, None),
    ("stale-send", "none", 400, {1}, None),
    ("repeat-batch", "none", 400, {1}, None),
    ("no-wait", "replication cut", 800, {1, 2, 5, 7}, ("sentinel", 1)),
]
ROUNDS = 4
BINARY = sys.argv.pop() if len(sys.argv) > 1 and not sys.argv[-1].startswith("-") else None


class Contract(MadeUp):
    """One intent under rule `hold`, which ran once and got its outcome, and journals with violations."""

    def test_one_run_and_its_replay_is_all_right(self):
        self.once()
        self.calm()
        self.assertEqual(self.rules(), set())

    def test_a_second_run_is_found(self):
        self.once()
        self.send(2, after=1)
        self.run_(2, 2)
        self.calm()
        self.assertEqual(self.rules(), {1})

    def test_two_runs_of_one_sending_are_found(self):
        self.once()
        self.run_(2, 1)
        self.calm()
        self.assertEqual(self.rules(), {1})

    def test_a_retry_after_an_unknown_outcome_is_found(self):
        for outcome in ("lost", "unknown"):
            with self.subTest(outcome):
                self.setUp()
                self.add("intent", 0, intent=0, record="a|/hold|k", rule="repeat")
                self.send()
                self.run_(outcome=outcome)
                self.send(2)
                self.run_(2, 2)
                self.deliver(serial=2)
                self.calm(serial=2)
                self.assertEqual(self.rules(), {1})

    def test_a_run_again_after_a_retryable_outcome_is_all_right(self):
        self.send()
        self.run_(outcome="retry")
        self.add("responded", 0.01, serial=1)
        self.send(2)
        self.run_(2, 2)
        self.deliver(serial=2)
        self.calm(serial=2)
        self.assertEqual(self.rules(), set())

    def test_two_live_claims_are_found(self):
        self.send()
        self.run_(outcome="retry")
        self.send(2)
        self.run_(2, 2)
        self.deliver(serial=2)
        self.calm(serial=2)
        self.assertEqual(self.rules(), {1})

    def test_two_claims_that_the_harness_saw_late_may_not_have_lived_at_once(self):
        for since, rules in [(3, set()), (0.5, {1})]:
            with self.subTest(since):
                self.setUp()
                self.add("intent", 0, intent=0, record="a|/hold|k", rule="retry")
                self.add("stall", 3, since=self.at + 3 - since)
                self.send(after=0.01)
                self.send(2, after=0.01)
                self.run_(2, 2)
                self.deliver(serial=2)
                self.calm(serial=2)
                self.assertEqual(self.rules(), rules)

    def test_a_process_that_starts_as_the_clock_is_set_may_not_know_it(self):
        # It takes requests before it is known to have started.
        for events, rules in [
            (["starts", "clock stepped", "send", "started"], set()),
            (["clock stepped", "starts", "send", "started"], set()),
            (["starts", "started", "wait", "clock stepped", "send"], {1}),
            (["starts", "send", "started"], {1}),
            (["clock stepped", "send", "starts", "started"], {1}),
        ]:
            with self.subTest(events):
                self.setUp()
                self.add("intent", 0, intent=0, record="a|/hold|k", rule="retry")
                self.send()
                for event in events:
                    if event == "send":
                        self.send(2, after=0.01)
                    elif event == "wait":
                        self.at += 0.2
                    else:
                        self.add("fault", 0.05, name=event, of="node0")
                self.run_(2, 2)
                self.deliver(serial=2)
                self.calm(serial=2)
                self.assertEqual(self.rules(), rules)

    def test_an_attempt_that_does_not_grow_is_found(self):
        self.send()
        self.run_(outcome="retry")
        self.add("responded", 0.01, serial=1)
        self.send(1)
        self.run_(2, 1)
        self.deliver(serial=2)
        self.calm(serial=2)
        self.assertEqual(self.rules(), {1})

    def test_two_outcomes_are_found(self):
        self.once()
        self.deliver("replayed", response="y")
        self.calm()
        self.assertEqual(self.rules(), {2})

    def test_a_duplicates_refusal_for_an_outcome_is_found(self):
        for word, rules in [("unknown", set()), ("executed", {2})]:
            with self.subTest(word):
                self.setUp()
                self.add("intent", 0, intent=0, record="a|/hold|k", rule="retry")
                self.send()
                self.run_(outcome="lost")
                self.send(2, after=2)
                self.deliver(word, serial=None, status=422, response="y", taken=1, retryable=word == "unknown")
                if word == "unknown":
                    self.send(3, after=2)
                    self.run_(2, 3)
                    self.deliver(serial=2)
                    self.calm(serial=2)
                else:
                    self.calm(serial=None, status=422, response="y", taken=1)
                self.assertEqual(self.rules(), rules)

    def test_an_intent_that_does_not_end_is_found(self):
        self.calm(word="in_flight", serial=None, status=409, retryable=True)
        self.assertEqual(self.rules(), {3})

    def test_a_response_that_is_not_kept_ends_only_an_intent_whose_response_was_cut_short(self):
        for outcome, original, was_had, rules in [
                ("lost", 201, False, set()), ("lost", 200, False, {3}), ("final", 201, False, set()),
                ("final", 200, False, {3}), ("final", 201, True, {3})]:
            with self.subTest(outcome=outcome, original=original, was_had=was_had):
                self.setUp()
                self.send()
                self.run_(outcome=outcome)
                if was_had:
                    self.deliver("executed")
                self.calm(word="response_not_kept", serial=None, status=409, original=original)
                self.assertEqual(self.rules(), rules)

    def test_what_was_never_sent_and_is_held_as_unknown_is_found(self):
        self.calm(word="outcome_unknown", serial=None, status=409)
        self.assertEqual(self.rules(), {3})

    def test_a_retryable_response_in_time_is_not_held_as_unknown(self):
        for after, rules in [(0.1, {3}), (2, set())]:
            with self.subTest(after):
                self.setUp()
                self.send()
                self.run_(outcome="retry")
                self.add("responded", after, serial=1)
                self.calm(word="outcome_unknown", serial=None, status=409)
                self.assertEqual(self.rules(), rules)

    def test_what_was_rejected_leaves_the_next_sending_in_doubt(self):
        for attempt in (1, 2):
            with self.subTest(attempt):
                self.setUp()
                self.send()
                self.run_(outcome="rejected")
                self.add("responded", 0.1, serial=1)
                self.send(attempt)
                self.calm(word="outcome_unknown", serial=None, status=409)
                self.assertEqual(self.rules(), set())

    def test_what_was_sent_may_be_held_as_unknown(self):
        self.send()
        self.calm(word="outcome_unknown", serial=None, status=409)
        self.assertEqual(self.rules(), set())

    def refuse(self, attempt=1, after=0.01):
        self.add("refused", after, id="i", record="a|/hold|k", attempt=attempt, node=0)

    def test_what_was_refused_may_be_sent_again_at_once(self):
        self.send()
        self.refuse()
        self.send(2, after=0.01)
        self.run_(2, 2)
        self.deliver(serial=2)
        self.calm(serial=2)
        self.assertEqual(self.rules(), set())

    def test_what_was_refused_and_ran_is_found(self):
        self.send()
        self.run_()
        self.refuse()
        self.deliver()
        self.calm()
        self.assertEqual(self.rules(), {1})

    def test_a_refusal_that_the_harness_passed_on_late_leaves_it_in_doubt(self):
        for pause, rules in [(0, set()), (2, {3})]:
            with self.subTest(pause):
                self.setUp()
                self.add("stall", 3, since=self.at + 2)
                self.send(after=0.1 + pause)
                self.refuse()
                self.calm(word="outcome_unknown", serial=None, status=409)
                self.assertEqual(self.rules(), rules)

    def test_what_was_refused_is_not_held_as_unknown(self):
        for after, rules in [(0.1, {3}), (2, set())]:
            with self.subTest(after):
                self.setUp()
                self.send()
                self.refuse(after=after)
                self.calm(word="outcome_unknown", serial=None, status=409)
                self.assertEqual(self.rules(), rules)

    def test_a_response_that_may_be_lost_leaves_it_in_doubt(self):
        self.send()
        self.run_(outcome="retry")
        self.add("responded", 0.1, serial=1)
        self.add("lost", 0.1, serial=1)
        self.calm(word="outcome_unknown", serial=None, status=409)
        self.assertEqual(self.rules(), set())

    def test_another_payload_that_ran_is_found(self):
        self.send()
        self.run_(outcome="retry", print_="q")
        self.add("responded", 0.01, serial=1)
        self.send(2)
        self.run_(2, 2)
        self.deliver(serial=2)
        self.calm(serial=2)
        self.assertEqual(self.rules(), {4})

    def test_a_response_to_another_payload_is_found(self):
        self.once()
        self.deliver("replayed", print_="q")
        self.calm()
        self.assertEqual(self.rules(), {4})

    def test_another_callers_response_is_found(self):
        self.once()
        self.calm(caller="b")
        self.assertEqual(self.rules(), {4})

    def forget(self, status=200):
        self.add("forgotten", 0.5, record="a|/hold|k", begun=self.at + 0.4, status=status)
        self.at += 0.5

    def test_what_was_forgotten_may_run_again(self):
        self.once()
        self.at += 5
        self.forget()
        self.send(2)
        self.run_(2, 2)
        self.deliver(serial=2, response="y")
        self.calm(serial=2, response="y")
        self.assertEqual(self.rules(), set())

    def test_what_may_not_have_been_forgotten_may_still_be_held_as_unknown(self):
        for status, rules in [(503, set()), (200, {3})]:
            with self.subTest(status):
                self.setUp()
                self.send()
                self.run_(outcome="unknown")
                self.deliver(word="outcome_unknown", serial=None, status=409)
                self.at += LONGEST_FLIGHT + 1
                self.forget(status)
                self.at += LONGEST_FLIGHT + 1
                self.calm(word="outcome_unknown", serial=None, status=409)
                self.assertEqual(self.rules(), rules)

    def test_what_was_forgotten_under_way_may_run_again_at_once(self):
        self.send()
        self.forget()
        self.send(2)
        self.run_(1, 1)
        self.run_(2, 2)
        self.calm(serial=2)
        self.assertEqual(self.rules(), set())

    def test_a_second_run_after_one_forget_is_found(self):
        self.once()
        self.at += 5
        self.forget()
        for serial in (2, 3):
            self.send(serial, after=1)
            self.run_(serial, serial)
        self.deliver(serial=2)
        self.calm(serial=2)
        self.assertEqual(self.rules(), {1})

    def test_a_replay_of_a_forgotten_outcome_is_found(self):
        for status, rules in [(200, {6}), (0, set())]:
            with self.subTest(status):
                self.setUp()
                self.send()
                self.forget(status)
                self.run_()
                self.calm()
                self.assertEqual(self.rules(), rules)

    def wipe(self):
        self.add("fault", 0.1, name="wipe", of="redis")
        self.add("fault", 0.1, name="wiped", of="redis")

    def replay(self):
        self.at += 0.3
        self.deliver("replayed")

    def wait(self):
        self.at += LONGEST_FLIGHT + 1

    def test_a_forget_holds_no_run_back_once_the_store_was_emptied(self):
        for events, rules in [
            (["send", "forget", "wipe", "run_", "wait"], set()),
            (["send", "wipe", "forget", "run_", "wait"], {6}),
            (["send", "forget", "run_", "wait", "wipe"], {6}),
            (["send", "forget", "run_", "replay", "wipe", "wait"], {6}),
        ]:
            with self.subTest(events):
                self.setUp()
                for event in events:
                    getattr(self, event)()
                self.calm()
                self.assertEqual(self.rules(), rules)

    def test_an_outcome_that_was_given_and_lost_is_found(self):
        self.once()
        self.calm(word="outcome_unknown", serial=None, status=409)
        self.assertEqual(self.rules(), {5})


@unittest.skipUnless(BINARY, "without a binary")
class Planted(unittest.TestCase):
    """Each bug is found out under faults that Semel itself withstands."""

    def violations(self, bug, faults, intents, seed=1, store=None):
        async def run():
            with tempfile.TemporaryDirectory(prefix="semel-faults-") as directory:
                rig = Rig(BINARY, directory, seed=seed, nodes=2, bug=bug, store=store)
                try:
                    await rig.start()
                    await rig.end(await rig.run(storm(faults, 2, store), intents, rate=100, seconds=60))
                finally:
                    await rig.stop()
            return rig.journal

        report = checker.check(asyncio.run(run()))
        return report.violations

    def test_without_a_bug_nothing_is_found(self):
        """In this weather Semel once gave a claim back before its ghost came, and began attempts anew."""
        for faults in ["busy, and haunted", "slow, and frozen", "slow, rejected, and forgotten"]:
            with self.subTest(faults):
                self.assertEqual(self.violations(None, faults, 1000), [])

    def test_each_is_found_out(self):
        for bug, faults, intents, rules, store in PLANTED:
            with self.subTest(bug):
                for seed in range(1, ROUNDS + 1):
                    found = self.violations(bug, faults, intents, seed, store)
                    if {rule for rule, _, _ in found} & rules:
                        break
                else:
                    self.fail(f"not found out: {bug} {found[:3]}")
                print(f"{bug}: found out among {faults}, round {seed}: {len(found)} violations", flush=True)


if __name__ == "__main__":
    unittest.main()
