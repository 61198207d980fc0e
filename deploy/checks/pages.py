"""The project's Markdown pages: the parts that links may name, and the links that lead nowhere."""

import pathlib
import re
import urllib.parse

DEPLOY = pathlib.Path(__file__).resolve().parent.parent
PROJECT = DEPLOY.parent
MANUAL = DEPLOY / "manual"


def prose(text):
    """A page's text without its examples, in which nothing is a heading or a link."""
    text = re.sub(r"^( *)(`{3,}|~{3,})[^\n]*\n(?:.*?\n)??\1\2[ ]*$", "", text, flags=re.M | re.S)
    return re.sub(r"(?<!`)(`+)(?!`)(?:(?!\n\n).)+?(?<!`)\1(?!`)", "", text, flags=re.S)


def anchors(page):
    """The parts of a page that a link may name: its headings, and those of one name numbered."""
    found = {}
    for heading in re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S), re.M):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w -]", "", text).strip().lower().replace(" ", "-")
        found[anchor] = found.get(anchor, -1) + 1
    return {f"{anchor}-{number}" if number else anchor for anchor, count in found.items() for number in range(count + 1)}


def links(page):
    """The relative targets of a page's links."""
    text = prose(page.read_text())
    targets = re.findall(r"\]\(\s*<?([^)\s>]+)", text) + re.findall(r"^ {0,3}\[[^]]+\]:\s+<?([^\s>]+)", text, re.M)
    return [urllib.parse.unquote(target) for target in targets if not re.match(r"[a-z][a-z0-9+.-]*:|//|/", target, re.I)]


def target(page, link):
    """The file or folder that a link of a page names."""
    path = link.split("#")[0]
    return (page.parent / path).resolve() if path else page.resolve()


def broken(pages):
    """The links of pages that lead nowhere, each with its page."""
    faults = []
    for page in pages:
        for link in links(page):
            file, _, anchor = target(page, link), *link.partition("#")[1:]
            if not file.exists():
                faults.append((page, link, "there is no such file"))
            elif anchor and (file.suffix != ".md" or anchor not in anchors(file)):
                faults.append((page, link, "there is no such heading"))
    return faults


def reached(index):
    """The pages that links lead to from the index, in however many steps."""
    found, left = set(), [index.resolve()]
    while left:
        page = left.pop()
        if page not in found:
            found.add(page)
            left += [other for other in (target(page, link) for link in links(page)) if other.suffix == ".md" and other.exists()]
    return found


def project():
    """All Markdown pages of the project, but for what was built or fetched."""
    return sorted(
        page for page in PROJECT.rglob("*.md")
        if not any(part.startswith(".") or part == "node_modules" for part in page.relative_to(PROJECT).parts))
