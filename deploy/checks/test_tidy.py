#!/usr/bin/env python3
"""deploy/checks/tidy finds each kind of fault, and no fault in what is good."""
import pathlib
import re
import subprocess
import tempfile
import unittest

TIDY = pathlib.Path(__file__).with_name("tidy")


def body(count):
    return "".join(f"    work({number})\n" for number in range(count))


class TidyTests(unittest.TestCase):
    def faults(self, path, text):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "Sources", path)
            file.parent.mkdir(parents=True)
            file.write_text(text)
            run = subprocess.run([TIDY, folder], capture_output=True, text=True)
            lines = run.stderr.splitlines()
            self.assertEqual(run.returncode, 1 if lines else 0, run.stderr)
            return [line.removeprefix("deploy/checks/tidy: Sources/" + path) for line in lines]

    def test_the_sources_are_tidy(self):
        run = subprocess.run([TIDY], capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stderr), (0, ""))

    def test_a_long_function_is_found_by_the_lines_of_its_body(self):
        for signature in [
            "  func run() {\n",
            "  @inline(never)\n  private mutating func run(\n    _ a: Int, b: Int\n  ) async throws(Fault) -> Int {\n",
            "  public init?(_ text: String) {\n",
            "  fileprivate static func run() -> Int\n  where T: Hashable\n  {\n",
        ]:
            with self.subTest(signature):
                text = "struct A {\n" + signature + "%s  }\n\n  func next() {\n    a()\n  }\n}\n"
                self.assertEqual(self.faults("Proxy/A.swift", text % body(40)), [])
                [fault] = self.faults("Proxy/A.swift", text % body(41))
                self.assertIn(" has 41 lines, more than 40", fault)

    def test_a_protocol_has_no_bodies(self):
        text = "protocol A {\n  func run(a: Int) throws -> Int\n" + body(50).replace("    ", "  func ") + "}\n"
        self.assertEqual(self.faults("Proxy/A.swift", text), [])

    def test_a_long_file_is_found(self):
        self.assertEqual(self.faults("CLI/A.swift", "let a = 1\n" * 400), [])
        [fault] = self.faults("CLI/A.swift", "let a = 1\n" * 401)
        self.assertIn("401 lines", fault)

    def test_what_the_simulation_replaces_is_found(self):
        for text in ["    Task { await run() }", "try await Task.sleep(for: span)", "let queue = DispatchQueue(label: a)",
                     "ClientBootstrap(group: group)", "public final actor Counter {", "usleep(10)"]:
            with self.subTest(text):
                self.assertIn("goes past what the simulation", *self.faults("Transport/Pool/A.swift", text))
                self.assertEqual(self.faults("Platform/A.swift", text), [])
                self.assertEqual(self.faults("Store/Embedded/A.swift", text), [])
                self.assertEqual(self.faults("Transport/A.swift", "// " + text), [])

    def test_foundation_stays_in_the_outer_modules(self):
        self.assertIn("builds without Foundation", *self.faults("Proxy/A.swift", "import Foundation\n"))
        self.assertIn("builds without Foundation", *self.faults("Proxy/A.swift", "@preconcurrency import Foundation\n"))
        self.assertEqual(self.faults("Proxy/A.swift", "import FoundationEssentials\n"), [])
        self.assertEqual(self.faults("Admin/A.swift", "import Foundation\n"), [])

    def test_what_reads_the_data_of_icu_is_found(self):
        for text in ["let formatter = ISO8601DateFormatter()", "let name = Locale.current", "print(date.formatted(.dateTime))",
                     "let text = error.localizedDescription"]:
            with self.subTest(text):
                self.assertIn("reads data of ICU", *self.faults("Admin/A.swift", text + "\n"))
                self.assertEqual(self.faults("Client/A.swift", text + "\n"), [])
                self.assertEqual(self.faults("Admin/A.swift", "// " + text + "\n"), [])

    def test_a_folder_names_something_and_nothing_is_left_for_later(self):
        self.assertIn("names nothing", *self.faults("Proxy/Helpers/A.swift", "let a = 1\n"))
        self.assertIn("do it now", *self.faults("Proxy/A.swift", "  // TODO: the rest\n"))
        self.assertEqual(self.faults("Proxy/A.swift", "/// A `TODO` of TAP.\n"), [])


class CheckTests(unittest.TestCase):
    def test_the_inner_loop_has_the_suites_of_the_store_that_need_no_server(self):
        project = TIDY.parents[2]
        names = "|".join(re.findall(r"^store\+?='([^']+)'$", TIDY.parents[1].joinpath("check").read_text(), re.M)).split("|")
        suites = {path.stem: path.parent.name for path in project.glob("Tests/StoreTests/**/*Tests.swift")}
        for name in filter(None, names):
            self.assertTrue(any(suite.startswith(name) for suite in suites), f"no suite of StoreTests begins with {name}")
        left_out = [suite for suite, folder in suites.items() if folder in ("Cache", "Conformance", "Embedded")
                    and not suite.startswith(tuple(filter(None, names)))]
        self.assertEqual(left_out, [])


if __name__ == "__main__":
    unittest.main()
