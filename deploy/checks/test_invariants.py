#!/usr/bin/env python3
"""deploy/checks/invariants counts each invariant once, and every line."""
import pathlib
import subprocess
import tempfile
import unittest

INVARIANTS = pathlib.Path(__file__).with_name("invariants")
TEXT = '''import Wire

// An invariant( in a comment.
/// `invariantBroken(` in another.
func run() {
  invariant(a == b, "an end // without a beginning")
  guard c else { invariantBroken("no beginning") }
  variant(c)
  invariants(d)
}
'''


class InvariantsTests(unittest.TestCase):
    def counted(self, files):
        with tempfile.TemporaryDirectory() as folder:
            for path, text in files.items():
                file = pathlib.Path(folder, "Sources", path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            return subprocess.run([INVARIANTS, folder], capture_output=True, text=True, check=True).stdout.splitlines()

    def test_calls_are_counted_and_comments_are_not(self):
        self.assertEqual(self.counted({"Proxy/A.swift": TEXT, "Proxy/B/B.swift": TEXT, "Store/A.swift": "let a = 1\n" * 4}), [
            "Idempotency: 0 invariants",
            "Proxy: 4 invariants, one in 5 lines",
            "Store: 0 invariants",
            "Transport: 0 invariants",
            "all: 4 invariants, one in 6 lines",
        ])

    def test_other_modules_and_other_files_do_not_count(self):
        self.assertEqual(self.counted({"CLI/A.swift": TEXT, "Proxy/README.md": TEXT})[-1], "all: 0 invariants")

    def test_the_sources_have_some_in_each_module(self):
        for line in subprocess.run([INVARIANTS], capture_output=True, text=True, check=True).stdout.splitlines():
            self.assertRegex(line, r"^\w+: \d+ invariants, one in \d+ lines$")


if __name__ == "__main__":
    unittest.main()
