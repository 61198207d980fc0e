"""Puts markup into every field that a stranger or an operator controls, and reads all pages of the console by a parser:
console_markup.py ADMIN PROXY. Prints the number of pages read."""

import html.parser
import json
import sys
import urllib.parse

import httpx

ADMIN, PROXY = sys.argv[1:]
FORM = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/x-www-form-urlencoded"}
KEY = "<img/src=x/onerror=alert(1)>"  # A key has no quotation marks and no spaces.
# The second one is a character together with the mark that follows it.
EVIL = '"><img src=x onerror=alert(1)>'
JOINED = '"\u0301 onfocus=alert(1) autofocus x="\u0301\u202e'
TAGS = set("""html head meta title link script noscript body a header nav ul li p span form button main h1 h2 h3 code
 input label select option section div table caption thead tbody tr th td details summary figure figcaption svg path
 text defs pattern dl dt dd ol time br textarea pre strong em img""".split())
ATTRIBUTES = set("""lang charset name content rel href type src defer class id tabindex data-refreshes aria-label
 aria-current aria-labelledby aria-hidden role width height alt method action value for required autocomplete autofocus
 spellcheck placeholder selected inputmode pattern size maxlength rows hidden viewbox d fill x y text-anchor
 patternunits patterntransform http-equiv scope data-events""".split())
seen = 0


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.text = ""

    def handle_starttag(self, tag, attributes):
        assert tag in TAGS, tag
        for name, value in attributes:
            assert name in ATTRIBUTES, (tag, name, value)
            assert name not in ("href", "action", "src") or (value or "").startswith(("/ui", "#")) or not value, value
        if tag == "script":
            assert dict(attributes)["src"] == "/ui/console.js"
        if tag == "img":
            assert dict(attributes)["src"] == "/ui/icon.svg"
        self.text += " ".join(value or "" for _, value in attributes)

    def handle_data(self, data):
        self.text += data


def read(response):
    global seen
    assert response.headers["content-type"].startswith("text/html"), response.headers
    page = Page()
    page.feed(response.text)
    page.close()
    seen += 1
    return page.text


def get(path):
    return read(httpx.get(ADMIN + path))


def post(path, **fields):
    return httpx.post(ADMIN + path, data=fields, headers=FORM)


def order(path, key, **fields):
    headers = {"Idempotency-Key": key, "Authorization": "Bearer " + EVIL, "User-Agent": EVIL, "Content-Type": "text/plain",
               "traceparent": EVIL, **fields}
    return httpx.post(PROXY + path, headers=headers, content=EVIL)


def main():
    order("/v1/orders", KEY)
    order("/v1/orders", KEY, **{"X-Forwarded-For": EVIL})
    httpx.post(PROXY + "/v1/orders", headers={"Idempotency-Key": KEY, "Authorization": "Bearer " + EVIL}, content="other")
    order("/v1/lost?" + urllib.parse.quote(EVIL), "lost")
    order("/v1/lost/" + urllib.parse.quote(EVIL), "lost-too")
    lost = httpx.get(ADMIN + "/v1/records").json()["records"][0]["id"]
    ended = httpx.post(ADMIN + "/v1/records/search", json={"key": KEY}).json()["records"][0]["id"]
    for path in ("/", "/records", "/routes", "/live", "/audit", "/configuration", "/records/" + lost, "/records/" + ended):
        get("/ui" + path)
    for text in (EVIL, JOINED):
        quoted = urllib.parse.quote(text)
        for kind in ("caller", text):
            read(post("/ui/records/search", text=text + "x", kind=kind))
        for path in ("/records?older=", "/records?route=", "/live?route=", "/live?outcome=", "/records?cursor=",
                     "/records?nothing=", "/records/", "/"):
            get("/ui" + path + quoted)
        read(post("/ui/records/bulk", route=text, older=text))
        read(post(f"/ui/records/{lost}/resolve", outcome="applied", attempt=text, status="201", reason=text,
                  headers=text + ": " + text))
    assert "Bearer of" + EVIL in read(post("/ui/records/search", text="Bearer of" + EVIL, kind="caller"))
    assert KEY + "x" in read(post("/ui/records/search", text=KEY + "x"))
    answer = post(f"/ui/records/{lost}/resolve", outcome="applied", attempt="1", status="201", body=EVIL,
                  headers="Content-Type: text/html\nLocation: " + urllib.parse.quote(EVIL), reason=EVIL)
    assert answer.status_code == 303, answer.text
    assert EVIL in get("/ui/audit") and EVIL in get("/ui/records/" + lost)
    assert EVIL in read(post(f"/ui/records/{lost}/body"))
    read(post(f"/ui/records/{ended}/body"))
    with httpx.stream("GET", ADMIN + "/ui/live/events?from=0", timeout=10) as stream:
        for line in stream.iter_lines():
            if line.startswith("data:"):
                page = Page()
                page.feed(line[5:])
                break
    print(json.dumps({"pages": seen}))


main()
