#!/usr/bin/env python3
"""deploy/checks/measure counts what it says it counts."""
import importlib.machinery
import importlib.util
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]

sys.path.insert(0, str(HERE))
loader = importlib.machinery.SourceFileLoader("measure", str(HERE / "measure"))
measure = importlib.util.module_from_spec(importlib.util.spec_from_loader("measure", loader))
loader.exec_module(measure)


class SizeTests(unittest.TestCase):
    def test_files_and_functions_are_counted_by_their_lines(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            body = "".join(f"  work({number})\n" for number in range(41))
            for path, text in {
                "Proxy/Long.swift": "let a = 1\n" * 401, "Client/SemelClient/Short.swift": "let a = 1\n" * 29,
                "Wire/Enough.swift": "let a = 1\n" * 30, "Proxy/Run.swift": "func run() {\n" + body + "}\n",
                "Idempotency/CONTRACT.md": "one two\nthree\n", "README.md": "no table\n",
            }.items():
                file = root / "Sources" / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            self.assertEqual(dict(measure.sizes(root)), {
                "lines of Swift": 503, "of these, for clients (`Client`)": 29, "files": 4, "files under 30 lines": 1,
                "files above 400 lines": 1, "functions above 40 lines": 1, "words of `CONTRACT.md`": 3,
                "objects that know of one record": 0, "tables that know of one record": 0})

    def test_the_owners_are_as_many_as_the_page_says(self):
        page = (ROOT / "Sources/README.md").read_text()
        objects, tables = re.search(r"^These are (\w+) objects and (\w+) tables\.", page, re.M).groups()
        self.assertEqual(measure.owners(page), (NUMBERS.index(objects), NUMBERS.index(tables)))

    def test_the_page_lists_what_is_measured(self):
        page = (ROOT / "Sources/README.md").read_text()
        listed = re.findall(r"^\| ([^|]+) \| [\d,]+ \|$", page.partition("\n## Size\n")[2].partition("\n## ")[0], re.M)
        self.assertEqual(listed, [figure for figure, _ in measure.sizes(ROOT)])


# Each line that it reads ends in a call of f and of g; the function h is never entered.
PROGRAM = """
#include <stdio.h>
__attribute__((noinline)) int g(int x) { return x * 3; }
__attribute__((noinline)) int f(int x) { return g(x) + 1; }
__attribute__((noinline)) int h(int x) { return x + 2; }
int main(int count, char **words) {
  char line[10];
  while (fgets(line, sizeof line, stdin)) { printf("%d\\n", count > 5 ? h(count) : f(line[0])); fflush(stdout); }
}
"""


class TraceTests(unittest.TestCase):
    @unittest.skipUnless(shutil.which("gcc") and platform.machine() == "x86_64", "needs gcc, and x86-64")
    def test_the_functions_that_are_entered_are_found_each_time(self):
        with tempfile.TemporaryDirectory() as folder:
            binary = pathlib.Path(folder, "program")
            subprocess.run(["gcc", "-x", "c", "-", "-o", binary], input=PROGRAM, text=True, check=True)
            entries = measure.entries(binary, {"f", "g", "h"})
            self.assertEqual(sorted(entries.values()), ["f", "g", "h"])
            process = subprocess.Popen([binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            replies = []

            def deliver():
                process.stdin.write(b"a\n")
                process.stdin.flush()
                replies.append(process.stdout.readline())

            deliver()
            points = measure.breakpoints.Breakpoints(process.pid, binary, entries)
            for _ in range(3):
                self.assertEqual({entries[address] for address in points.entered(deliver)}, {"f", "g"})
            self.assertEqual(points.entered(lambda: None), set())
            process.kill()
            points.end(process.pid)
            process.stdin.close()
            process.stdout.close()
            self.assertEqual(replies, [b"292\n"] * 4)

    def test_a_symbol_is_of_the_function_around_it(self):
        own = "Proxy.RequestRunner.claim(Proxy.KeyedCall) async -> ()"
        for text in [own, "(2) suspend resume partial function for " + own, "(1) await resume partial function for " + own,
                     "closure #1 () -> () in " + own, "closure #1 (Swift.Int) -> () in closure #2 () -> () in " + own]:
            with self.subTest(text):
                self.assertEqual(measure.function(text), own)
        private = "closure #1 () -> () in Wire.Decoder.(fold in _D836FD4A40E91CA9218A59C1AEFEA819)(Swift.Int) -> ()"
        self.assertEqual(measure.function(private), "Wire.Decoder.fold(Swift.Int) -> ()")
        self.assertEqual(measure.function("A.read(Swift.Int) -> ()"), "A.read(Swift.Int) -> ()")

    def test_accessors_and_what_the_compiler_makes_are_no_functions(self):
        for text in ["Proxy.Worker.now.getter : Swift.Int", "protocol witness for A.f() -> () in conformance B", "type metadata for A",
                     "partial apply forwarder for closure #1 () -> () in A.f() -> ()", "outlined copy of A?",
                     "default argument 0 of A.f(Swift.Int) -> ()", "static A.__derived_enum_equals(A, A) -> Swift.Bool",
                     "closure #1 () -> () in A.b.getter : Swift.Int"]:
            with self.subTest(text):
                self.assertIsNone(measure.function(text))


if __name__ == "__main__":
    unittest.main()
