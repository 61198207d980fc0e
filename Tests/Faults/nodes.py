"""The processes under test: nodes of Semel, and Redis."""

import asyncio
import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time

import settings


# The figures of a node that speak of lost claims.
COUNTED = {
    "failovers": "semel_store_failovers_total",
    "suspects": "semel_store_claims_suspect_total",
    "superseded": "semel_superseded_owners_total",
}


ports_given = set()


def free_port():
    """A port that nobody listens on, and that was given to no other process of this run.

    It is below those that Linux gives to connecting sockets, and none of those of the tests that may run beside, or of
    the commands in the documentation, which are tried at the same time."""
    while True:
        port = 10_000 + secrets.randbelow(6_000)
        with contextlib.suppress(OSError), socket.socket() as probe:
            # A connection that has ended does not matter to a server, which sets this as well.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            if port not in ports_given:
                ports_given.add(port)
                return port


class Process:
    """A process that is started, killed, frozen and started again."""

    start_timeout = 60  # The maximum duration of a start, in seconds: a node is ready once its troubled store is.

    def __init__(self, name, command, directory, environment=None):
        self.name = name
        self.command = command
        self.directory = directory
        self.environment = os.environ | (environment or {})
        self.process = None
        self.is_meant_to_run = False

    def spawn(self):
        with open(os.path.join(self.directory, f"{self.name}.log"), "ab") as log:
            # SIGXFSZ stays ignored, as Python has it: a file at its limit is an error, not the end.
            self.process = subprocess.Popen(
                self.command,
                cwd=self.directory,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                restore_signals=False,
            )
        self.is_meant_to_run = True

    async def is_up(self):
        raise NotImplementedError

    async def start(self):
        self.spawn()
        limit = time.monotonic() + self.start_timeout
        while not await self.is_up():
            if self.process.poll() is not None or time.monotonic() > limit:
                raise RuntimeError(f"{self.name} does not start: {self.last_lines()}")
            await asyncio.sleep(0.01)

    def last_lines(self):
        with open(os.path.join(self.directory, f"{self.name}.log"), "rb") as log:
            return log.read()[-2000:].decode(errors="replace")

    def signal(self, number):
        if self.process and self.process.poll() is None:
            self.process.send_signal(number)

    def freeze(self):
        self.signal(signal.SIGSTOP)

    def thaw(self):
        self.signal(signal.SIGCONT)

    async def kill(self):
        self.is_meant_to_run = False
        self.signal(signal.SIGKILL)
        await self.ended()

    async def ended(self):
        while self.process and self.process.poll() is None:
            await asyncio.sleep(0.005)

    @property
    def has_died(self):
        """Whether the process ended by itself."""
        return self.is_meant_to_run and self.process.poll() is not None


class Node(Process):
    def __init__(self, name, binary, directory, store, backend_port, http2, clock=None):
        self.port = free_port()
        self.admin = free_port()
        self.counted = None
        path = os.path.join(directory, f"{name}.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(settings.text(self.port, self.admin, store, backend_port, http2))
        command = [binary, "run", "--config", path]
        # libfaketime ends the first process that it is loaded into by itself; `env` goes before, and becomes the node.
        super().__init__(name, ["/usr/bin/env", *command] if clock else command, directory, clock)

    async def is_up(self):
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.admin)
            writer.write(b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            head = await asyncio.wait_for(reader.readline(), 1)
            writer.close()
            return b" 200 " in head
        except (OSError, asyncio.TimeoutError):
            return False

    async def forget(self, id_, record, journal):
        """Asks its admin listener to forget a record. Without a response it may have done so, or may yet."""
        begun, status = time.monotonic(), 0
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.admin)
            head = f"DELETE /v1/records/{id_} HTTP/1.1\r\nHost: 127.0.0.1:{self.admin}\r\n"
            writer.write((head + "Content-Type: application/json\r\nConnection: close\r\n\r\n").encode())
            line = await asyncio.wait_for(reader.readline(), 3)
            status = int(line.split()[1]) if line else 0
            writer.close()
        except (OSError, asyncio.TimeoutError, IndexError):
            pass
        journal.add("forgotten", record=record, begun=begun, status=status)

    async def find(self, record):
        """Asks its admin listener for the id of a record; none without a response."""
        caller, path, key = record.split("|")
        query = {"route": path[1:], "key": key, "caller": {"header:Authorization": caller}}
        body = json.dumps(query | {"path": path, "method": "POST", "host": "shop.example"}).encode()
        head = f"POST /v1/records/find HTTP/1.1\r\nHost: 127.0.0.1:{self.admin}\r\nContent-Length: {len(body)}\r\n"
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.admin)
            writer.write((head + "Content-Type: application/json\r\nConnection: close\r\n\r\n").encode() + body)
            _, _, document = (await asyncio.wait_for(reader.read(-1), 3)).partition(b"\r\n\r\n")
            writer.close()
            return json.loads(document).get("id")
        except (OSError, asyncio.TimeoutError, ValueError):
            return None

    async def figures(self):
        """Its counters since its start; none without a response."""
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.admin)
            head = f"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:{self.admin}\r\nConnection: close\r\n\r\n"
            writer.write(head.encode())
            page = (await asyncio.wait_for(reader.read(-1), 1)).decode()
            writer.close()
        except (OSError, asyncio.TimeoutError):
            return None
        lines = [line.rsplit(" ", 1) for line in page.splitlines() if line.startswith("semel_")]
        return {
            word: sum(int(float(value)) for name, value in lines if name.split("{")[0] == metric)
            for word, metric in COUNTED.items()
        }

    async def drain(self):
        """SIGTERM. False where it does not end within its grace."""
        self.is_meant_to_run = False
        self.signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self.ended(), settings.SHUTDOWN_GRACE + 3)
        except asyncio.TimeoutError:
            await self.kill()
            return False
        return True


class Redis(Process):
    def __init__(self, directory, clock):
        self.port = free_port()
        self.data = os.path.join(directory, "redis")
        os.makedirs(self.data)
        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.data]
        # A kill must lose nothing that was acknowledged, as the operator's manual asks of a store.
        command += ["--save", "", "--appendonly", "yes", "--appendfsync", "always"]
        super().__init__("redis", command, directory, clock.environment)

    async def query(self, *words):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write((" ".join(words) + "\r\n").encode())
        try:
            return await asyncio.wait_for(reader.readline(), 1)
        finally:
            writer.close()

    async def is_up(self):
        try:
            return b"PONG" in await self.query("PING")
        except (OSError, asyncio.TimeoutError):
            return False

    def forget(self):
        """Throws all of its data away; it must not run."""
        shutil.rmtree(self.data)
        os.makedirs(self.data)
