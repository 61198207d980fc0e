"""The check of the contract's rules, on made-up pages, and the links of this project's pages. Run by deploy/test."""

import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = "# The contract\n\n## 1. One\n\n- **1.1 First.** A rule.\n- **1.2** Another.\n- **Not a rule.**\n\n## 2. Two\n\n- **2.1** A third.\n"
TESTS = '@Test(arguments: [1, 2])\n  func `one is tested, always`(n: Int) {}\n  @Test\n  func plain() {}\n  func `helper`() {}\n'
TABLE = "| rule | tests |\n|---|---|\n| 1.1 | `one is tested, always` |\n| 1.2 | `plain`, `wire.vtc` |\n| 2.1 | `test_it` |\n"


class Rules(unittest.TestCase):
    def faults(self, page=PAGE, table=TABLE):
        with tempfile.TemporaryDirectory() as folder:
            files = {
                "Sources/Idempotency/CONTRACT.md": page, "Tests/RULES.md": table, "Tests/ATests/One.swift": TESTS,
                "Tests/Wire/wire.vtc": "", "Tests/Faults/test_faults.py": "class A:\n    def test_it(self):\n        pass\n"}
            for name, text in files.items():
                file = pathlib.Path(folder) / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            ended = subprocess.run([ROOT / "deploy/checks/rules", folder], capture_output=True, text=True)
        lines = [line.removeprefix("deploy/checks/rules: ") for line in ended.stderr.splitlines()]
        self.assertEqual(ended.returncode, 1 if lines else 0, ended.stderr)
        return lines

    def test_rules_with_tests_are_good(self):
        self.assertEqual(self.faults(), [])

    def test_a_rule_without_a_row_or_a_test_is_a_fault(self):
        self.assertEqual(self.faults(page=PAGE + "- **2.2** More.\n"), ["rule 2.2 has no row in Tests/RULES.md"])
        self.assertEqual(self.faults(table=TABLE.replace("`test_it`", "")), ["Tests/RULES.md: rule 2.1 has no test"])

    def test_a_test_that_does_not_exist_is_a_fault(self):
        for name in ("one is tested", "helper", "test_other", "other.vtc"):
            self.assertEqual(
                self.faults(table=TABLE.replace("plain", name)),
                [f"Tests/RULES.md: rule 1.2 names no test that exists: {name}"])

    def test_a_row_without_a_rule_or_a_second_one_is_a_fault(self):
        self.assertEqual(self.faults(table=TABLE + "| 3.1 | `plain` |\n"), ["Tests/RULES.md: there is no rule 3.1"])
        self.assertEqual(self.faults(table=TABLE + "| 2.1 | `plain` |\n"), ["Tests/RULES.md: rule 2.1 has two rows"])

    def test_a_number_that_does_not_follow_or_stands_twice_is_a_fault(self):
        self.assertEqual(
            self.faults(page=PAGE.replace("**1.2**", "**1.3**"), table=TABLE.replace("1.2", "1.3")),
            ["CONTRACT.md: rule 1.3 does not follow 1.1"])
        self.assertIn("rule 1.1 stands twice", self.faults(page=PAGE.replace("**1.2**", "**1.1**")))

    def test_a_contract_without_rules_is_a_fault(self):
        self.assertIn("there is no rule in Sources/Idempotency", self.faults(page="# Nothing\n"))

    def test_the_rules_of_this_contract_have_tests(self):
        ended = subprocess.run([ROOT / "deploy/checks/rules"], capture_output=True, text=True)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))


def anchors(page):
    """The parts of a page that a link may name: its headings, but nothing of a code block."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    headings = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading) for heading in re.findall(r"^#+ (.*)$", text, re.M)]
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


class Links(unittest.TestCase):
    def test_each_link_to_the_contract_leads_to_a_page_and_a_part_of_it(self):
        folder = ROOT / "Sources/Idempotency"
        for page in [*ROOT.glob("*.md"), *(p for top in ("Sources", "Tests", "deploy") for p in (ROOT / top).rglob("*.md"))]:
            for path, part in re.findall(r"\]\(([^)#\s:]*)(?:#([^)\s]*))?\)", page.read_text()):
                target = (page.parent / path).resolve() if path else page
                if folder not in (target.parent, page.parent):
                    continue
                with self.subTest(page=str(page.relative_to(ROOT)), link=f"{path}#{part}"):
                    self.assertTrue(target.exists())
                    if part:
                        self.assertIn(part, anchors(target))


if __name__ == "__main__":
    unittest.main()
