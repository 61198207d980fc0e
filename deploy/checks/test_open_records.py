"""The load test of open records, with 12,000 of them, on either store: that it works, that it can say no, and that an alert
fires after a kill. It waits for Prometheus for minutes, and runs beside the others. SEMEL_BINARY names the binary."""

import os
import pathlib
import shutil
import subprocess
import unittest

OPEN = pathlib.Path(__file__).resolve().parent.parent / "loadtest" / "open"


class OpenRecords(unittest.TestCase):
    def try_on(self, store):
        # Two of the limits cannot be kept, and the script says so of these alone.
        arguments = ["--records", "12000", "--open", "250", "--rounds", "3", "--list-ms", "5000", "--count-ms", "0", "--find-ms", "0"]
        result = subprocess.run([str(OPEN), "--store", store, *arguments], capture_output=True, text=True, timeout=400)
        self.assertEqual((result.returncode, result.stderr), (1, ""), result.stdout)
        for failure in ("FAILED: a count takes", "FAILED: a search takes"):
            self.assertIn(failure, result.stdout)
        self.assertEqual(result.stdout.count("FAILED"), 2, result.stdout)
        if shutil.which("prometheus") or os.environ.get("SEMEL_TEST_ALL"):
            self.assertRegex(result.stdout, r"SemelOutcomesGrow fires \d+ s after the kill")

    def test_on_redis(self):
        self.try_on("redis")

    def test_on_the_embedded_store(self):
        self.try_on("embedded")


if __name__ == "__main__":
    unittest.main()
