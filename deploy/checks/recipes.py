"""The rig of test_recipes.py: a recipe's configuration out of its page, Semel with it, and a backend that behaves as the
test says."""

import collections
import contextlib
import http.client
import http.server
import json
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time

from clients import BINARY, DEPLOY, PATIENCE, unused_port

PAGES = sorted((DEPLOY / "manual").glob("recipes-*.md"))
# The address of the backend on the pages.
ADDRESS = "http://127.0.0.1:3000"
CUT = object()

Request = collections.namedtuple("Request", "method path headers body number")
Response = collections.namedtuple("Response", "status headers body")


def recipes():
    """The configuration of each recipe by its heading."""
    found = {}
    for page in PAGES:
        for heading, chapter in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", page.read_text(), re.M | re.S):
            [text] = re.findall(r"^```yaml\n(.*?)^```$", chapter, re.M | re.S)
            assert heading not in found and "**Why**" in chapter and "**What remains open.**" in chapter, heading
            found[heading] = text
    return found


class Backend(http.server.ThreadingHTTPServer):
    """Responds to each request with what `behave` returns for it: status, fields and body, or `CUT`, a lost connection."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, behave, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.behave, self.lock, self.requests = behave, threading.Lock(), []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def stop(self):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __getattr__(self, name):
        if name.startswith("do_"):
            return self.respond
        raise AttributeError(name)

    def respond(self):
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        with self.server.lock:
            request = Request(self.command, self.path, self.headers, body, len(self.server.requests) + 1)
            self.server.requests.append(request)
            response = self.server.behave(request)
        if response is CUT:
            self.close_connection = True
            return self.connection.shutdown(socket.SHUT_RDWR)
        status, fields, body = response
        self.send_response_only(status)
        for name, value in {"Content-Length": len(body), "Date": self.date_time_string(), **fields}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def document(status, content, **fields):
    """A response with a JSON document; an underscore in a field's name stands for a hyphen."""
    fields = {name.replace("_", "-"): value for name, value in fields.items()}
    return status, {"Content-Type": "application/json", **fields}, json.dumps(content).encode()


class Recipe:
    """Semel with a recipe's configuration, before a backend."""

    def __init__(self, heading, behave):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="semel-recipe-"))
        self.backend = Backend(behave)
        self.port, self.admin = unused_port(), unused_port()
        text = recipes()[heading]
        assert ADDRESS in text, heading
        self.file = self.folder / "semel.yaml"
        self.file.write_text(
            f'listen: [{{address: "127.0.0.1:{self.port}"}}]\nadmin: {{address: "127.0.0.1:{self.admin}"}}\n'
            f'store: {{kind: embedded, path: "{self.folder}/semel.db"}}\n'
            + text.replace(ADDRESS, f"http://127.0.0.1:{self.backend.server_port}"))
        self.process = None

    def __enter__(self):
        checked = subprocess.run([BINARY, "check", str(self.file)], capture_output=True, text=True)
        assert (checked.returncode, checked.stderr) == (0, ""), checked.stdout + checked.stderr
        self.process = subprocess.Popen([BINARY, "run", "--config", str(self.file)], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + PATIENCE
        while self.run("health").returncode:
            assert time.monotonic() < deadline and self.process.poll() is None, "semel does not become ready"
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.backend.stop()
        if self.process:
            self.process.terminate()
            self.process.wait(PATIENCE)
        shutil.rmtree(self.folder)

    def run(self, *words):
        """The end of a command about this node."""
        return subprocess.run(
            [BINARY, *words, "--admin", f"http://127.0.0.1:{self.admin}"], capture_output=True, text=True)

    def send(self, method, path, body=b"", **fields):
        """Sends a request on a connection of its own. An underscore in a field's name stands for a hyphen."""
        fields = {name.replace("_", "-"): value for name, value in fields.items() if value is not None}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            body = body.encode() if isinstance(body, str) else body
            connection.request(method, path, body, fields)
            response = connection.getresponse()
            return Response(response.status, response.headers, response.read())
        finally:
            connection.close()

    @property
    def runs(self):
        """The number of requests that the backend got."""
        return len(self.backend.requests)
