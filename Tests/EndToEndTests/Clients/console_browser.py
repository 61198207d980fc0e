"""Drives the console in Debian's Chromium, over its own protocol: console_browser.py ADMIN PROXY on|off SHOTS.

Finds an unknown record from *Now*, resolves it with a reason, sees what its next delivery gets, and reads who did it and
why. With `on` scripts run, and *Live* shows a request by itself. SHOTS is a folder for pictures, or `-`. Prints what the
browser objected to."""

import asyncio
import json
import sys

import browser
import httpx

ADMIN, PROXY, SCRIPTS, SHOTS = sys.argv[1:]


def order(key):
    return httpx.post(PROXY + "/v1/orders", content='{"amount":1999}', timeout=20, headers={
        "Idempotency-Key": key, "Authorization": "Bearer alice", "Content-Type": "application/json"})


async def resolve(page):
    await page.open("/ui/")
    await page.until("document.body.innerText.includes('1 unknown outcome')")
    await page.click("table a[href^='/ui/records/']")
    await page.until("document.body.innerText.includes('It gets 409 outcome_unknown')")
    await page.click("details summary")
    await page.until("document.querySelector('details').open")
    await page.type("#status", "201")
    await page.type("#body", "made by hand")
    await page.type("#applied-reason", "seen in the ledger")
    await page.shoot("decide")
    await page.click("details[open] button")
    await page.until("document.body.innerText.includes('Resolved as applied')")
    await page.until("document.querySelector('.acts h2').innerText === 'Undo'")
    again = order("lost")
    assert (again.status_code, again.text) == (201, "made by hand"), again.text
    assert again.headers["Idempotent-Replayed"] == "true"
    await page.open(await page.evaluate("location.pathname"))
    await page.until("document.body.innerText.includes('cannot be undone here')")
    assert not await page.evaluate("document.querySelector('form[action$=resolve]')")
    await page.open("/ui/audit")
    await page.until("document.body.innerText.includes('seen in the ledger')")


async def follow(page):
    await page.open("/ui/live")
    await page.until("document.getElementById('live-state').innerText === 'Following the log.'")
    before = await page.evaluate("document.getElementById('live').rows.length")
    order("followed")
    await page.until(f"document.getElementById('live').rows.length > {before}")
    await page.click("#pause")
    await page.until("document.getElementById('live-state').innerText === 'Paused.'")


async def look(page):
    """Every page fits a phone's width, its tables aside, and has no element that the keyboard cannot reach."""
    for width in (380, 768, 1280):
        await page.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        for path in ("/", "/records", "/routes", "/live", "/audit", "/configuration"):
            await page.open("/ui" + path)
            assert await page.evaluate("document.documentElement.scrollWidth") <= width, (path, width)
            await page.shoot(f"{path.strip('/') or 'now'}-{width}")
            unnamed = await page.evaluate("""[...document.querySelectorAll('input:not([type=hidden]),select,textarea')]
                .filter(field => !field.labels.length).length""")
            assert unnamed == 0, path


async def main():
    async with browser.opened(ADMIN, None if SHOTS == "-" else SHOTS) as page:
        if SCRIPTS == "off":
            await page.call("Emulation.setScriptExecutionDisabled", value=True)
        assert order("lost").status_code == 502
        await resolve(page)
        if SCRIPTS == "on":
            await follow(page)
        await look(page)
        print(json.dumps({"objections": page.objections}))


asyncio.run(main())
