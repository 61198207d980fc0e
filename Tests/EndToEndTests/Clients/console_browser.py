"""Drives the console in Debian's Chromium, over its own protocol: console_browser.py ADMIN PROXY on|off SHOTS.

Finds an unknown record from *Now*, resolves it with a reason, sees what its next delivery gets, and reads who did it and
why. With `on` scripts run, and *Live* shows a request by itself. SHOTS is a folder for pictures, or `-`. Prints what the
browser objected to."""

import asyncio
import base64
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import httpx
import websockets

ADMIN, PROXY, SCRIPTS, SHOTS = sys.argv[1:]
WAIT = 60


class Browser:
    def __init__(self, socket):
        self.socket, self.number, self.objections = socket, 0, []

    async def call(self, method, **parameters):
        self.number += 1
        number = self.number
        await self.socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(await self.socket.recv())
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]
            if message.get("method") == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
                self.objections.append(message["params"]["entry"]["text"])
            if message.get("method") == "Runtime.exceptionThrown":
                self.objections.append(message["params"]["exceptionDetails"]["text"])

    async def evaluate(self, expression):
        return (await self.call("Runtime.evaluate", expression=expression, returnByValue=True))["result"].get("value")

    async def until(self, expression):
        """Waits until an expression is true on the page."""
        end = time.monotonic() + WAIT
        while True:
            try:
                if await self.evaluate(expression):
                    return
            except AssertionError:
                pass  # The page is being replaced.
            assert time.monotonic() < end, (expression, await self.evaluate("document.body.innerText"))
            await asyncio.sleep(0.05)

    async def open(self, path):
        await self.call("Page.navigate", url=ADMIN + path)
        await self.until(f"location.href === {json.dumps(ADMIN + path)} && document.readyState === 'complete'")

    async def click(self, selector):
        """Clicks where a person would, with a mouse."""
        place = await self.evaluate(f"""(() => {{
            const element = document.querySelector({json.dumps(selector)})
            element.scrollIntoView({{block: 'center'}})
            const box = element.getBoundingClientRect()
            return [box.x + box.width / 2, box.y + box.height / 2]
        }})()""")
        for kind in ("mousePressed", "mouseReleased"):
            await self.call("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1)

    async def type(self, selector, text):
        await self.click(selector)
        await self.call("Input.insertText", text=text)

    async def shoot(self, name):
        if SHOTS != "-":
            data = (await self.call("Page.captureScreenshot", format="png"))["data"]
            (pathlib.Path(SHOTS) / f"{name}.png").write_bytes(base64.b64decode(data))


def order(key):
    return httpx.post(PROXY + "/v1/orders", content='{"amount":1999}', timeout=20, headers={
        "Idempotency-Key": key, "Authorization": "Bearer alice", "Content-Type": "application/json"})


async def resolve(browser):
    await browser.open("/ui/")
    await browser.until("document.body.innerText.includes('1 unknown outcome')")
    await browser.click("table a[href^='/ui/records/']")
    await browser.until("document.body.innerText.includes('It gets 409 outcome_unknown')")
    await browser.click("details summary")
    await browser.until("document.querySelector('details').open")
    await browser.type("#status", "201")
    await browser.type("#body", "made by hand")
    await browser.type("#applied-reason", "seen in the ledger")
    await browser.shoot("decide")
    await browser.click("details[open] button")
    await browser.until("document.body.innerText.includes('Resolved as applied')")
    await browser.until("document.querySelector('.acts h2').innerText === 'Undo'")
    again = order("lost")
    assert (again.status_code, again.text) == (201, "made by hand"), again.text
    assert again.headers["Idempotent-Replayed"] == "true"
    await browser.open(await browser.evaluate("location.pathname"))
    await browser.until("document.body.innerText.includes('cannot be undone here')")
    assert not await browser.evaluate("document.querySelector('form[action$=resolve]')")
    await browser.open("/ui/audit")
    await browser.until("document.body.innerText.includes('seen in the ledger')")


async def follow(browser):
    await browser.open("/ui/live")
    await browser.until("document.getElementById('live-state').innerText === 'Following the log.'")
    before = await browser.evaluate("document.getElementById('live').rows.length")
    order("followed")
    await browser.until(f"document.getElementById('live').rows.length > {before}")
    await browser.click("#pause")
    await browser.until("document.getElementById('live-state').innerText === 'Paused.'")


async def look(browser):
    """Every page fits a phone's width, its tables aside, and has no element that the keyboard cannot reach."""
    for width in (380, 768, 1280):
        await browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        for path in ("/", "/records", "/routes", "/live", "/audit", "/configuration"):
            await browser.open("/ui" + path)
            assert await browser.evaluate("document.documentElement.scrollWidth") <= width, (path, width)
            await browser.shoot(f"{path.strip('/') or 'now'}-{width}")
            unnamed = await browser.evaluate("""[...document.querySelectorAll('input:not([type=hidden]),select,textarea')]
                .filter(field => !field.labels.length).length""")
            assert unnamed == 0, path


async def main():
    # Processes of the browser's own may write there until they have ended.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        process = subprocess.Popen(
            ["/usr/bin/chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-proxy-server",
             "--remote-debugging-port=0", f"--user-data-dir={folder}/profile", "about:blank"],
            env={**os.environ, "HOME": folder, "XDG_CONFIG_HOME": folder, "XDG_CACHE_HOME": folder},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            port = pathlib.Path(folder, "profile", "DevToolsActivePort")
            end = time.monotonic() + WAIT
            while not (port.exists() and port.read_text().count("\n")):
                assert process.poll() is None and time.monotonic() < end, "chromium does not start"
                time.sleep(0.05)
            base = f"http://127.0.0.1:{port.read_text().splitlines()[0]}"
            page = next(page for page in httpx.get(base + "/json").json() if page["type"] == "page")
            async with websockets.connect(page["webSocketDebuggerUrl"], max_size=None) as socket:
                browser = Browser(socket)
                for domain in ("Page", "Log", "Runtime"):
                    await browser.call(domain + ".enable")
                if SCRIPTS == "off":
                    await browser.call("Emulation.setScriptExecutionDisabled", value=True)
                assert order("lost").status_code == 502
                await resolve(browser)
                if SCRIPTS == "on":
                    await follow(browser)
                await look(browser)
                print(json.dumps({"objections": browser.objections}))
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


asyncio.run(main())
