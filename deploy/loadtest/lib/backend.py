"""A backend that counts what it ran: by Idempotency-Request-Id, on a port of its own for questions and orders.

Run as `python3 backend.py PORT CONTROL_PORT`. Control: GET /count, POST /delay/MILLISECONDS, POST /down, POST /busy
(every request gets 503, and is counted as refused), POST /up.
"""

import asyncio
import json
import sys


class Orders:
    def __init__(self):
        self.runs, self.delay, self.anonymous, self.is_busy, self.refused = {}, 0.0, 0, False, 0

    def run(self, request_id):
        if request_id:
            self.runs[request_id] = self.runs.get(request_id, 0) + 1
        else:
            self.anonymous += 1
        return len(self.runs) + self.anonymous

    def count(self):
        return {
            "executed": sum(self.runs.values()) + self.anonymous,
            "intents": len(self.runs),
            "refused": self.refused,
            "twice": sum(1 for runs in self.runs.values() if runs > 1),
        }


class Connection(asyncio.Protocol):
    def __init__(self, orders, control=None):
        self.orders, self.control, self.bytes = orders, control, b""

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.bytes += data
        while (end := self.bytes.find(b"\r\n\r\n")) >= 0:
            head = self.bytes[:end].decode("latin-1")
            fields = {}
            for line in head.split("\r\n")[1:]:
                name, _, value = line.partition(":")
                fields[name.lower()] = value.strip()
            whole = end + 4 + int(fields.get("content-length", 0))
            if len(self.bytes) < whole:
                return
            self.bytes = self.bytes[whole:]
            method, path, _ = head.split("\r\n")[0].split(" ")
            if self.control:
                asyncio.ensure_future(self.obey(path))
            else:
                self.order(method, fields)

    def order(self, method, fields):
        if self.orders.is_busy:
            self.orders.refused += 1
            return self.respond(503, b"{}")
        number = self.orders.run(fields.get("idempotency-request-id")) if method == "POST" else 0
        body = b'{"order":%d}' % number
        if self.orders.delay:
            asyncio.get_running_loop().call_later(self.orders.delay, self.respond, 201, body)
        else:
            self.respond(201 if method == "POST" else 200, body)

    async def obey(self, path):
        self.respond(200, json.dumps(await self.control(path)).encode())

    def respond(self, status, body):
        if not self.transport.is_closing():
            self.transport.write(
                b"HTTP/1.1 %d OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (status, len(body)) + body)


async def main(port, control_port):
    orders, loop = Orders(), asyncio.get_running_loop()
    open_connections = set()

    class Counted(Connection):
        def connection_made(self, transport):
            super().connection_made(transport)
            open_connections.add(self)

        def connection_lost(self, error):
            open_connections.discard(self)

    async def listen():
        return await loop.create_server(lambda: Counted(orders), "127.0.0.1", port, backlog=4096)

    state = {"listener": await listen()}

    async def control(path):
        word, _, value = path.strip("/").partition("/")
        if word == "delay":
            orders.delay = float(value) / 1000
        elif word == "down" and state["listener"]:
            state["listener"].close()
            state["listener"] = None
            for connection in list(open_connections):
                connection.transport.close()
        elif word == "busy":
            orders.is_busy = True
        elif word == "up":
            orders.is_busy = False
            state["listener"] = state["listener"] or await listen()
        return orders.count()

    await loop.create_server(lambda: Connection(orders, control), "127.0.0.1", control_port)
    print("listening", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
