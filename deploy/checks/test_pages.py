"""The project's Markdown pages: their links lead somewhere, and the manual's pages are found and short. Run by deploy/test;
needs no binary."""

import pathlib
import re
import tempfile
import unittest

import pages

MAX_WORDS = 2000


class Project(unittest.TestCase):
    def test_each_relative_link_leads_to_a_file_and_a_heading(self):
        found = pages.project()
        for name in ("README.md", "deploy/README.md", "Sources/README.md", "Tests/README.md", "Sources/Idempotency/CONTRACT.md"):
            self.assertIn(pages.PROJECT / name, found)
        self.assertGreater(sum(len(pages.links(page)) for page in found), 300)
        faults = [f"{page.relative_to(pages.PROJECT)}: ({link}) {fault}" for page, link, fault in pages.broken(found)]
        self.assertEqual(faults, [], "\n".join(faults))


class Manual(unittest.TestCase):
    def setUp(self):
        self.pages = sorted(pages.MANUAL.glob("*.md"))
        self.assertGreater(len(self.pages), 10)

    def test_the_index_names_each_page_and_the_pages_beside_it(self):
        named = {pages.target(pages.DEPLOY / "README.md", link) for link in pages.links(pages.DEPLOY / "README.md")}
        self.assertEqual({*self.pages, *pages.DEPLOY.glob("*.md")} - named - {pages.DEPLOY / "README.md"}, set())
        self.assertLessEqual(set(self.pages), pages.reached(pages.DEPLOY / "README.md"))

    def test_each_page_is_read_in_ten_minutes(self):
        words = {page.name: len(page.read_text().split()) for page in self.pages}
        self.assertEqual({name: count for name, count in words.items() if count > MAX_WORDS}, {})


class Facts(unittest.TestCase):
    """What single pages state, held to where it comes from."""

    def test_each_problem_code_has_its_chapter(self):
        text = (pages.PROJECT / "Sources/Idempotency/Problem/Problem.swift").read_text()
        codes = re.findall(r'^    case \w+ = "(\w+)"$', text, re.M)
        self.assertGreater(len(codes), 15)
        page = (pages.MANUAL / "problem-codes.md").read_text()
        self.assertEqual(sorted(re.findall(r"^## (\w+)$", page, re.M)), sorted(codes))
        chapters = re.findall(r"^## \w+\n(.*?)(?=^## |\Z)", page, re.M | re.S)
        for chapter in chapters:
            self.assertEqual(chapter.count("**Client:**") + chapter.count("**Operator:**"), 2, chapter)

    def test_the_memory_of_redis_is_that_of_its_formula(self):
        page = (pages.MANUAL / "redis-size.md").read_text()
        parts = re.findall(r"^\| .* \| .* \| (\d+) \+ response \| (\d+)(?: \+ response)? \|$", page, re.M)
        self.assertEqual(len(parts), 2)
        (small, large), (small_later, large_later) = [[int(bytes) for bytes in part] for part in parts]
        sizes = [int(size.replace(",", "")) for size in re.findall(r"([\d,]+) B(?= \|)", page)]
        rows = re.findall(r"^\| ([\d,]+) \| ([\d.,]+) a second \| (.*) \|$", page, re.M)
        self.assertEqual((len(sizes), len(rows)), (4, 4))
        for keys, rate, cells in rows:
            keys = int(keys.replace(",", ""))
            self.assertAlmostEqual(float(rate.replace(",", "")), keys / 86400, delta=keys / 86400 * 0.05)
            for size, cell in zip(sizes, cells.split(" | "), strict=True):
                # A day of `retention`, and another of `remember`, in which a response of up to 1 KiB stays.
                of_key = small + small_later + 2 * size if size <= 1024 else large + large_later + size
                exact = keys * of_key / 1e9
                self.assertAlmostEqual(float(cell.removesuffix(" GB")), exact, delta=0.08 * exact, msg=f"{keys} of {size}")


class Check(unittest.TestCase):
    """What the tests above find."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return self.folder / name

    def faults(self, text):
        return [(link, fault) for _, link, fault in pages.broken([self.write("page.md", text)])]

    def test_a_link_that_leads_nowhere_is_found(self):
        self.write("other.md", "# Other\n\n## A part: `of` it\n\n## Twice\n\n## Twice\n\n```\n# none\n```\n")
        (self.folder / "config.yaml").write_text("")
        good = ("other.md", "other.md#other", "other.md#a-part-of-it", "other.md#twice-1", "#here", "config.yaml", ".",
                "https://example.com/none.md", "/etc/none.md")
        for link in good:
            self.assertEqual(self.faults(f"# Here\n\n[text]({link})\n"), [], link)
        file, heading = "there is no such file", "there is no such heading"
        for link, fault in {"none.md": file, "../none.md#x": file, "other.md#none": heading, "other.md#twice-2": heading,
                            "#none": heading, "config.yaml#x": heading}.items():
            self.assertEqual(self.faults(f"# Here\n\nThis [text\nof two lines]({link}).\n"), [(link, fault)], link)
            self.assertEqual(self.faults(f"# Here\n\n[text]: {link}\n"), [(link, fault)], link)

    def test_an_example_has_no_links_and_hides_none(self):
        self.assertEqual(self.faults("`[text](none.md)` and ``[text](none.md)``\n\n```sh\n[text](none.md)\n```\n"), [])
        for text in ("`a` [text](none.md) `b`", "[`a`](none.md)", "```\nx\n```\n\n[text](none.md)\n\n```\ny\n```\n"):
            self.assertEqual(self.faults(text), [("none.md", "there is no such file")], text)

    def test_a_page_to_which_no_link_leads_is_not_reached(self):
        index = self.write("index.md", "[one](one.md)\n")
        one, two = self.write("one.md", "[two](two.md) [index](index.md)\n"), self.write("two.md", "")
        self.write("lost.md", "[one](one.md)\n")
        self.assertEqual(pages.reached(index), {index, one, two})


if __name__ == "__main__":
    unittest.main()
