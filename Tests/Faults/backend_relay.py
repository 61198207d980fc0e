"""The relay between a node and the backend: writes down what was sent, whether or not it arrives.

With a planted bug it does what a worse node would do: send again, make the next attempt itself after an unknown
outcome, send too late, or send a batch twice.
"""

import asyncio

import backend
import batches
import http1
import relay

PLANTED = ("re-send", "retry-after-unknown", "stale-send", "repeat-batch")


class Pair(relay.Pair):
    request = b""  # The last request, as long as it has no response.
    is_resent = False
    part = b""  # The beginning of a batch, until all of it has come.

    def upwards(self, data):
        data, self.part = self.part + data, b""
        if is_part_of_batch(data):
            self.part = data
            return None
        if not data.startswith(b"POST "):
            self.request += data
            return super().upwards(data)
        if self.relay.bug == "stale-send" and self.relay.dice.random() < 0.1:
            # As if the node had been frozen before its first byte, and had sent all the same.
            self.near.pause()
            asyncio.get_running_loop().call_later(self.relay.stale_after, self.sent, data)
            return None
        return self.sent(data)

    def sent(self, data):
        self.request = data
        self.note(data)
        self.near.resume()
        if self.relay.bug == "repeat-batch" and is_batch(data) and self.relay.dice.random() < 0.3:
            asyncio.ensure_future(self.repeat(data))
        super().upwards(data)

    async def repeat(self, data):
        """As if a layer below the node had sent it once more, on a connection of its own."""
        _, writer = await asyncio.open_connection(*self.relay.target)
        writer.write(data)
        await asyncio.sleep(0.2)
        writer.close()

    def note(self, data):
        head, _, body = data.partition(http1.HEAD_END)
        head += b"\r\n"
        path = data.split(b" ", 2)[1].decode()
        fields = {
            name: http1.field(head, name.encode())
            for name in ("authorization", "idempotency-key", "idempotency-request-id", "idempotency-attempt")
        }
        for request in requests(path, fields, body, self.relay.node):
            self.relay.journal.add("sent", **request)

    def downwards(self, data):
        self.request = b""
        super().downwards(data)
        if self.late:
            self.relay.log("holds back")

    def lost(self, side, error):
        if side is self.far and self.request and not self.is_resent:
            if self.relay.bug == "re-send":
                return self.resend(self.request)
            if self.relay.bug == "retry-after-unknown":
                return self.resend(self.next_attempt())
        return super().lost(side, error)

    def resend(self, request):
        self.is_resent = True
        self.far = relay.Side(self)
        self.waiting = [request]
        asyncio.ensure_future(self.connect())

    def next_attempt(self):
        if is_batch(self.request):
            self.note(self.request)
            return self.request
        attempt = http1.field(self.request, b"Idempotency-Attempt")
        field = b"Idempotency-Attempt: "
        request = self.request.replace(field + attempt.encode(), field + b"%d" % (int(attempt) + 1))
        self.note(request)
        return request


def is_batch(data):
    return data.startswith(f"POST {batches.PATH} ".encode())


def is_part_of_batch(data):
    if not is_batch(data):
        return False
    head, end, body = data.partition(http1.HEAD_END)
    return not end or len(body) < int(http1.field(head + b"\r\n", b"Content-Length"))


def requests(path, fields, body, node):
    """The entries of a request in the journal: of a batch, one for each item."""
    caller, key = fields["authorization"], fields["idempotency-key"]
    if path == batches.PATH:
        return [
            {"id": None, "record": backend.record(caller, path, item), "attempt": key, "node": node}
            for item, _ in batches.items(body)
        ]
    attempt = int(fields["idempotency-attempt"])
    id_ = fields["idempotency-request-id"]
    return [{"id": id_, "record": backend.record(caller, path, key), "attempt": attempt, "node": node}]


class BackendRelay(relay.Relay):
    pair_type = Pair

    def __init__(self, name, target, dice, journal, node, bug, stale_after):
        super().__init__(name, target, dice, journal)
        self.node = node
        self.bug = bug
        self.stale_after = stale_after
