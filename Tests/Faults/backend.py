"""A backend that does what its dice say, and writes down each time it runs something."""

import asyncio
import collections
import hashlib
import json
import random

import http1


def script(seed, key, visit, trouble):
    """What the backend does when a key comes for the so-manieth time: `(kind, luck)`. The same for the same seed."""
    dice = random.Random(f"{seed} {key} {visit}")
    fate = dice.random() * 100
    for kind, share in trouble.items():
        if fate < share:
            return kind, dice.random()
        fate -= share
    return "plain", dice.random()


# Shares of a hundred. What no fault is, is there always: a backend has its errors and slow moments.
HEALTHY = {"busy": 2, "rejected": 1, "failed": 2, "slow": 5, "chunked": 5, "large": 1}
SICK = HEALTHY | {
    "unread": 4,
    "cut after": 4,
    "cut in answer": 4,
    "late": 3,
    "late busy": 1,
    "stalled": 2,
    "gateway": 3,
    "late rejected": 1,
}
# kind: status and class of its outcome.
STATUS = {
    "busy": (503, "retry"),
    "late busy": (503, "retry"),
    "rejected": (401, "rejected"),
    "late rejected": (401, "rejected"),
    "failed": (500, "final"),
    "gateway": (502, "unknown"),
}


class Connection(asyncio.Protocol):
    def __init__(self, backend):
        self.backend = backend
        self.message = http1.Message()
        self.transport = None

    def connection_made(self, transport):
        self.transport = transport
        self.backend.connections.add(self)

    def connection_lost(self, error):
        self.backend.connections.discard(self)

    def data_received(self, data):
        while data:
            data = self.message.feed(data)
            if not self.message.is_whole:
                return
            message, self.message = self.message, http1.Message()
            self.backend.take(self, message)

    def write(self, data):
        if not self.transport.is_closing():
            self.transport.write(data)


class Backend:
    def __init__(self, seed, journal, time_out):
        self.seed = seed
        self.journal = journal
        self.time_out = time_out  # After which Semel no longer waits for an answer.
        self.shares = HEALTHY
        self.connections = set()
        self.serial = 0
        self.visits = collections.Counter()
        self.port = 0
        self.server = None

    async def start(self):
        loop = asyncio.get_running_loop()
        self.server = await loop.create_server(lambda: Connection(self), "127.0.0.1", 0, backlog=1024)
        self.port = self.server.sockets[0].getsockname()[1]

    def stop(self):
        self.server.close()
        for connection in list(self.connections):
            connection.transport.abort()

    def take(self, connection, message):
        key = message.fields["idempotency-key"]
        attempt = int(message.fields["idempotency-attempt"])
        self.visits[key] += 1
        kind, luck = script(self.seed, key, self.visits[key], self.shares)
        if kind == "unread":
            return connection.transport.abort()
        self.serial += 1
        serial = self.serial
        status, outcome = STATUS.get(kind, (201, "final"))
        if kind in ("cut after", "cut in answer", "stalled"):
            outcome = "lost"
        caller = message.fields["authorization"]
        print_ = hashlib.sha256(message.body).hexdigest()[:16]
        self.journal.add(
            "ran",
            serial=serial,
            id=message.fields["idempotency-request-id"],
            record=record(caller, message.start.split(" ")[1], key),
            attempt=attempt,
            print=print_,
            status=status,
            outcome=outcome,
        )
        body = json.dumps({"serial": serial, "print": print_, "caller": caller, "attempt": attempt}).encode()
        body += b" " * int(200_000 * luck if kind == "large" else 600 * luck)
        whole = http1.answer(status, {"X-Run": serial}, body, is_chunked=kind == "chunked")
        self.answer(connection, kind, luck, serial, whole)
        return None

    def answer(self, connection, kind, luck, serial, whole):
        loop = asyncio.get_running_loop()
        if kind == "cut after":
            loop.call_later(luck * 0.05, connection.transport.abort)
        elif kind == "cut in answer":
            connection.write(whole[: 1 + int(luck * (len(whole) - 2))])
            loop.call_later(luck * 0.05, connection.transport.close)
        elif kind.startswith("late"):
            loop.call_later(self.time_out * (1.05 + luck * 0.7), self.finish, connection, serial, whole)
        elif kind == "slow":
            loop.call_later(luck * self.time_out * 0.9, self.finish, connection, serial, whole)
        elif kind != "stalled":
            loop.call_later(luck * 0.02, self.finish, connection, serial, whole)

    def finish(self, connection, serial, whole):
        self.journal.add("answered", serial=serial)
        connection.write(whole)


def record(caller, path, key):
    """The name under which the logs of both ends know one record."""
    return f"{caller}|{path}|{key}"
