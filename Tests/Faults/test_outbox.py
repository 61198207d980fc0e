"""Shows that the checker of the clients' runs has teeth: each planted mistake is found, and a run without one is clean.

python3 Tests/Faults/test_outbox.py SEMEL CLIENT
"""

import pathlib
import subprocess
import sys
import unittest

import outbox

SEMEL, CLIENT = sys.argv[1:3] if len(sys.argv) > 2 else (None, None)


class OutboxTests(unittest.TestCase):
    def among_faults(self, *more):
        command = [sys.executable, pathlib.Path(outbox.__file__), "--semel", SEMEL, "--client", CLIENT, *more]
        return subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)

    def test_a_run_without_a_mistake_is_clean(self):
        run = self.among_faults("--intents", "600", "--clients", "2", "--limit", "150")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_each_planted_mistake_is_found(self):
        for bug in outbox.BUGS:
            with self.subTest(bug):
                # On a busy machine too little of it may run in the first time.
                for limit in ("20", "90"):
                    run = self.among_faults(
                        *("--intents", "240", "--clients", "1", "--limit", limit, "--bug", bug),
                        *("--death-rate", "0.03", "--token-deaths", "0.05"),
                    )
                    if run.returncode == 0:
                        break
                self.assertEqual(run.returncode, 0, run.stdout + run.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
