"""Tests of the simulator itself: that a seed says everything, and that the planted faults fit the sources.

    python3 Tests/Simulation/test_simulator.py BINARY
"""

import os
import pty
import shlex
import subprocess
import sys
import unittest

import mutants

BINARY = sys.argv.pop(1) if len(sys.argv) > 1 else ".build/debug/simulate"
WORLDS = 4
TOPOLOGIES = ("memory", "standalone", "replica", "sentinel", "cluster")


def simulate(*arguments):
    return subprocess.run([BINARY, *arguments], capture_output=True, text=True, timeout=600)


def hashes(worlds, *arguments):
    return simulate("--first", "1", "--worlds", str(worlds), "--hashes", *arguments).stdout.splitlines()


class Simulator(unittest.TestCase):
    def test_equal_seeds_are_equal_worlds_in_two_processes(self):
        first, second = (hashes(WORLDS) for _ in range(2))
        self.assertEqual(len(first), WORLDS + 1)
        self.assertEqual(first[:-1], second[:-1])
        self.assertEqual(len({line.split()[1] for line in first[:-1]}), WORLDS, "different seeds, equal worlds")

    def test_equal_seeds_are_equal_worlds_in_one_process(self):
        run = simulate("--first", "1", "--worlds", str(WORLDS), "--twice")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_a_world_with_a_fault_is_made_small(self):
        intents = ",".join(map(str, range(20)))
        many = f"topology=memory;nodes=2;http2=clients;seconds=2;faults=runsTwice,kill,storeSlow;intents={intents};batches=0"
        run = simulate("--minimise", "1", "--plan", many, "--seconds", "100")
        self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
        command = shlex.split(run.stdout.splitlines()[0])
        plan = dict(member.split("=") for member in command[4].split(";"))
        self.assertEqual((plan["nodes"], plan["faults"]), ("1", "runsTwice"), run.stdout)
        self.assertEqual(len((plan["intents"] + plan["batches"]).split(",")), 1, run.stdout)
        again = simulate(*command[1:])
        self.assertEqual(again.returncode, 1, again.stdout + again.stderr)
        self.assertIn("rule 1", again.stdout)
        self.assertIn("ran 2 times", again.stdout)

    def test_progress_is_shown_on_a_terminal_alone(self):
        control, terminal = pty.openpty()
        words = ("--topology", "memory", "--seconds", "5")
        run = subprocess.run([BINARY, *words], stdout=terminal, timeout=600)
        os.close(terminal)
        shown = os.read(control, 65536).decode()
        os.close(control)
        self.assertEqual(run.returncode, 0, shown)
        # Each line takes the place of the one before, also the last.
        self.assertRegex(shown, r"\r\x1b\[K\d+ worlds, \d+ intents[^\n]*\r\x1b\[K\d+ worlds")
        self.assertNotRegex(simulate(*words).stdout, r"[\r\x1b]")

    def test_equal_seeds_are_equal_worlds_with_each_store(self):
        found = {}
        for topology in TOPOLOGIES:
            with self.subTest(topology):
                first, second = (hashes(1, "--topology", topology)[:-1] for _ in range(2))
                self.assertEqual(len(first), 1)
                self.assertEqual(first, second)
                found[topology] = first[0]
        self.assertEqual(len(set(found.values())), len(TOPOLOGIES), "different stores, equal worlds")

    def test_a_process_that_begins_anew_goes_on_where_it_was(self):
        count = 103
        lines = hashes(count, "--plan", "topology=memory;nodes=1;http2=;seconds=1;faults=;intents=0;batches=")
        self.assertEqual([line.split()[0] for line in lines[:-1]], [str(seed + 1) for seed in range(count)])
        self.assertTrue(lines[-1].startswith(f"{count} worlds, "), lines[-1])

    def test_each_planted_fault_fits_the_sources(self):
        mutants.changed(mutants.ROOT)


if __name__ == "__main__":
    unittest.main()
