"""Debian's Chromium without a window, driven over its own protocol."""

import asyncio
import base64
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time

import httpx
import websockets

WAIT = 60


class Browser:
    """One page. `base` stands before the paths that it opens, and pictures go to the folder `shots`, if there is one."""

    def __init__(self, socket, base, shots=None):
        self.socket, self.base, self.shots = socket, base, shots
        self.number, self.objections = 0, []

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
        await self.call("Page.navigate", url=self.base + path)
        await self.until(f"location.href === {json.dumps(self.base + path)} && document.readyState === 'complete'")

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
        if self.shots:
            data = (await self.call("Page.captureScreenshot", format="png"))["data"]
            (pathlib.Path(self.shots) / f"{name}.png").write_bytes(base64.b64decode(data))


@contextlib.asynccontextmanager
async def opened(base, shots=None):
    """Starts a browser, and ends it with all of its processes."""
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
            tools = f"http://127.0.0.1:{port.read_text().splitlines()[0]}"
            page = next(page for page in httpx.get(tools + "/json").json() if page["type"] == "page")
            async with websockets.connect(page["webSocketDebuggerUrl"], max_size=None) as socket:
                browser = Browser(socket, base, shots)
                for domain in ("Page", "Log", "Runtime"):
                    await browser.call(domain + ".enable")
                yield browser
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
