"""The rig of test_clients.py: the page's examples, Semel, a backend that fails by script, and a network that does."""

import collections
import contextlib
import http.server
import json
import os
import pathlib
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

DEPLOY = pathlib.Path(__file__).resolve().parent.parent
BINARY = os.environ.get("SEMEL_BINARY", str(DEPLOY.parent / ".build/debug/semel"))
PAGE = (DEPLOY / "clients.md").read_text()
PATIENCE = 60
PORTS = iter(random.sample(range(16000, 20000), 4000))

# The command line of the other programs for the page's module: URL NAME BODY, and a line on standard output. Node has
# no localStorage that survives the process, and older versions have `crypto` as a module only.
DRIVER = """
import {existsSync, readFileSync, writeFileSync} from 'node:fs'
import {webcrypto} from 'node:crypto'
globalThis.crypto ??= webcrypto
const items = existsSync('storage') ? JSON.parse(readFileSync('storage')) : {}
const store = () => writeFileSync('storage', JSON.stringify(items)) ?? true
globalThis.localStorage = new Proxy(items, {
  set(items, name, value) { items[name] = String(value); return store() },
  deleteProperty(items, name) { delete items[name]; return store() },
})
const {submit} = await import('./order.mjs')
const [url, name, body] = process.argv.slice(2)
const patience = process.env.PATIENCE ? 1000 * process.env.PATIENCE : undefined
const order = () => submit(url, name, JSON.parse(body), () => readFileSync('token', 'utf8').trim(), patience)
for (const ended of await Promise.all(Array.from({length: process.env.TAPS ?? 1}, order)))
  console.log(ended.mismatch ? `mismatch ${ended.mismatch}`
    : ended.unknown ? `unknown ${ended.unknown}` : `response ${ended.status} ${ended.text}`)
"""


def examples():
    """The page's programs, by the names of files in their first comments."""
    blocks = re.findall(r"^```\w+\n(.*?)^```$", PAGE, re.M | re.S)
    named = [(re.match(r"(?:#!.*\n)?(?:#|//) ([\w.]+): ", block), block) for block in blocks]
    return {match[1]: block for match, block in named if match}


class Programs:
    """The examples, ready to run."""

    NEEDS = {"python": sys.executable, "javascript": "node", "swift": "swiftc", "bash": "curl"}

    def __init__(self, folder):
        self.folder = folder
        self.missing = {name: tool for name, tool in self.NEEDS.items() if not shutil.which(tool)}
        for name, text in examples().items():
            (folder / name).write_text(text)
        (folder / "driver.mjs").write_text(DRIVER)
        self.commands = {
            "python": [sys.executable, folder / "order.py"], "javascript": ["node", folder / "driver.mjs"],
            "swift": [folder / "order"], "bash": ["bash", folder / "order.sh"]}
        for name in self.missing:
            del self.commands[name]

    def compile(self):
        if "swift" in self.commands:
            subprocess.run(["swiftc", "-swift-version", "6", "order.swift", "-o", "order"], cwd=self.folder, check=True)

    def start(self, language, home, *arguments, **variables):
        environment = {**os.environ, **{name: str(value) for name, value in variables.items()}}
        return subprocess.Popen(
            [*self.commands[language], *arguments], cwd=home, env=environment, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)


class Backend(http.server.ThreadingHTTPServer):
    """Takes orders at /v1/WHO/SCRIPT, and fails as the script says."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.attempts = collections.defaultdict(list)  # by path: (key, body, record's id) of each
        self.executed = collections.Counter()  # by path
        self.repaired = set()  # the paths that fail no more
        self.released = collections.defaultdict(threading.Event)  # by path
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def stop(self):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            attempts = self.server.attempts[self.path]
            attempts.append((self.headers["Idempotency-Key"], body, self.headers["Idempotency-Request-Id"]))
            number = len(attempts)
        script = "plain" if self.path in self.server.repaired else self.path.partition("?")[0].rpartition("/")[2]
        getattr(self, "script_" + script, self.script_plain)(number)

    def respond(self, status, document, **fields):
        text = json.dumps(document).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": len(text), **fields}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(text)

    def script_plain(self, _):
        with self.server.lock:
            self.server.executed[self.path] += 1
            number = self.server.executed[self.path]
        self.respond(201, {"order": number})

    def script_busy(self, number):
        if number == 1:
            return self.respond(503, {}, Retry_After=1)
        self.respond(500, {}, Idempotency_Outcome="retry") if number == 2 else self.script_plain(number)

    def script_down(self, _):
        self.respond(503, {})

    def script_broken(self, _):
        self.respond(503, {"error": "half done"}, Idempotency_Outcome="final")

    def script_cut(self, _):
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def script_held(self, number):
        assert self.server.released[self.path].wait(2 * PATIENCE), "nobody released the order"
        self.script_plain(number)

    def script_picky(self, number):
        if b"none" in self.server.attempts[self.path][number - 1][1]:
            return self.respond(400, {"error": "no such item"})
        self.script_plain(number)

    def script_guarded(self, number):
        if self.headers["Authorization"] == "Bearer fresh":
            return self.script_plain(number)
        self.respond(401, {"error": "expired"}, WWW_Authenticate="Bearer")

    def log_message(self, *_):
        pass


class Network:
    """A relay between a client and Semel. It can lose the first response, and change what is sent."""

    def __init__(self, semel, lose_when=None, instead=b"", change=(b"", b"")):
        self.semel, self.instead, self.change = semel, instead, change
        self.lose_when = lose_when  # called with Semel's end of the first connection, which is lost once it returns
        self.sent = self.received = b""
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.seen = threading.Condition()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.connect, args=(client, self.lose_when), daemon=True).start()
            self.lose_when = None

    def connect(self, client, lose):
        with client, socket.create_connection(("127.0.0.1", self.semel)) as server:
            up = threading.Thread(target=self.pump_up, args=(client, server), daemon=True)
            up.start()
            self.pump_down(client, server, lose)
            up.join()

    def pump_up(self, client, server):
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                self.sent += data
                server.sendall(data.replace(*self.change) if self.change[0] else data)
            server.shutdown(socket.SHUT_WR)

    def pump_down(self, client, server, lose):
        with contextlib.suppress(OSError):
            if lose:
                lose(server)
                client.sendall(self.instead)
                return client.shutdown(socket.SHUT_RDWR)
            while data := server.recv(65536):
                with self.seen:
                    self.received += data
                    self.seen.notify_all()
                client.sendall(data)
            client.shutdown(socket.SHUT_WR)

    def until(self, text):
        """Waits until Semel has sent this."""
        with self.seen:
            assert self.seen.wait_for(lambda: text in self.received, PATIENCE), (text, self.received)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def unused_port():
    """A port that nobody uses, of those that neither a client's connection gets nor a test of Swift."""
    while True:
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port := next(PORTS)))
            return port


class Semel:
    """The binary, in front of the backend."""

    ROUTES = """
  - {name: orders, match: {methods: [POST], path: "/v1/**"}, caller: {parts: [address]}, duplicates: reject}
"""

    def __init__(self, folder, backend, routes=ROUTES):
        self.port, self.admin = unused_port(), unused_port()
        config = folder / "semel.yaml"
        config.write_text(f"""
listen: [{{address: "127.0.0.1:{self.port}"}}]
admin: {{address: "127.0.0.1:{self.admin}"}}
upstreams: {{backend: {{url: "http://127.0.0.1:{backend.server_port}", response_timeout: 150s, settle: 1s}}}}
store: {{kind: embedded, path: "{folder}/semel.db"}}
routes: {routes}
""")
        self.process = subprocess.Popen([BINARY, "run", "--config", str(config)], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + PATIENCE
        while self.run("health").returncode:
            assert time.monotonic() < deadline and self.process.poll() is None, "semel does not become ready"
            time.sleep(0.05)

    def run(self, *arguments):
        return subprocess.run(
            [BINARY, *arguments, "--admin", f"http://127.0.0.1:{self.admin}"], capture_output=True, text=True)

    def stop(self):
        self.process.terminate()
        self.process.wait(PATIENCE)


def temporary_folder():
    return tempfile.TemporaryDirectory(prefix="semel-clients-")


def until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)
