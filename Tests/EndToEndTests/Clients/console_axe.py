"""Holds the console against WCAG 2.2 AA by axe-core, in Debian's Chromium: console_axe.py ADMIN PROXY TOKEN.

Looks at every page, in the light and in the dark scheme. Prints the pages, and what axe-core objects to."""

import asyncio
import importlib.util
import json
import pathlib
import sys

import browser
import httpx

ADMIN, PROXY, TOKEN = sys.argv[1:]
# The package needs another driver of browsers, which is not installed: only its copy of axe-core is used.
[PACKAGE] = importlib.util.find_spec("axe_playwright_python").submodule_search_locations
AXE = (pathlib.Path(PACKAGE) / "axe.min.js").read_text()
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa"]
looked, violations = [], []


def order(key):
    return httpx.post(PROXY + "/v1/orders", content='{"amount":1999}', timeout=20, headers={
        "Idempotency-Key": key, "Authorization": "Bearer alice", "Content-Type": "application/json"})


async def objections(page):
    """What axe-core objects to on the page that is open. It leaves the size of targets out by default."""
    await page.evaluate(AXE)
    result = await page.call(
        "Runtime.evaluate", awaitPromise=True, returnByValue=True, expression=f"""axe.run(document, {{
            runOnly: {{type: 'tag', values: {json.dumps(TAGS)}}}, rules: {{'target-size': {{enabled: true}}}},
            resultTypes: ['violations']}}).then(found => ({{passes: found.passes.length, violations: found.violations.map(
            rule => [rule.id, rule.help, rule.nodes.map(node => node.html + ' ' + node.failureSummary)])}}))""")
    found = result["result"]["value"]
    assert found["passes"] > 5, found
    return found["violations"]


async def examine(page, name):
    """Holds the page that is open against the rules, in both schemes."""
    await page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    for scheme in ("light", "dark"):
        await page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        violations.extend(f"{name}, {scheme}: {json.dumps(violation)}" for violation in await objections(page))
        looked.append(f"{name}, {scheme}")


async def plant(page):
    """Puts faults on the page that is open, all of which are found."""
    await page.evaluate("""(() => {
        const [text, small] = [document.createElement('p'), document.createElement('div')]
        text.innerText = 'hardly to be read'
        text.style.color = '#777777'
        text.style.background = '#888888'
        small.innerHTML = '<button>+</button><button>-</button>'
        for (const button of small.children) Object.assign(button.style,
            {width: '9px', height: '9px', minHeight: '0', minWidth: '0', padding: '0', margin: '0', border: '0'})
        document.querySelector('main').append(document.createElement('input'), text, small)
    })()""")
    found = {rule for rule, _, _ in await objections(page)}
    assert found == {"label", "color-contrast", "target-size"}, found


async def log_in(page):
    await page.open("/ui/")
    await examine(page, "login")
    await page.type("#token", "none of these")
    await page.click("form button.primary")
    await page.until("document.querySelector('[role=alert]') !== null")
    await examine(page, "login, refused")
    await page.type("#token", TOKEN)
    await page.click("form button.primary")
    await page.until("document.body.classList.contains('page-now')")


async def submit(page, action, heading, **fields):
    """Sends a form of the page that is open, as its button does, and waits for the page whose heading begins so."""
    await page.evaluate(f"""(() => {{
        const form = document.querySelector('form[action$="{action}"]')
        for (const [name, value] of Object.entries({json.dumps(fields)})) form.elements[name].value = value
        form.requestSubmit()
    }})()""")
    await page.until(f"document.readyState === 'complete' && document.querySelector('h1').innerText.startsWith({json.dumps(heading)})")


async def main():
    assert order("recorded").status_code == 201
    assert order("lost").status_code == 502
    async with browser.opened(ADMIN) as page:
        await log_in(page)
        for name in ("", "records", "routes", "live", "audit", "configuration", "nothing"):
            await page.open(f"/ui/{name}")
            await examine(page, name or "now")
        await page.open("/ui/records")
        await submit(page, "/records/search", "Search", text="none")
        await examine(page, "a search without a find")
        await submit(page, "/records/search", "Record", text="recorded")
        await examine(page, "a completed record")
        await page.open("/ui/records")
        await submit(page, "/records/bulk", "Resolve many as not applied", older="0s")
        await examine(page, "many records")
        await page.open("/ui/")
        await page.click("table a[href*='/records/']")
        await page.until("location.pathname.includes('/records/') && document.body.innerText.includes('outcome_unknown')")
        await examine(page, "an unknown record")
        await plant(page)
    print(json.dumps({"looked": looked, "violations": violations}))


asyncio.run(main())
