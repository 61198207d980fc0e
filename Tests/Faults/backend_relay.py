"""The relay between a node and the backend: writes down what was sent, whether or not it arrives.

With a planted bug it does what a worse node would do: send again, make the next attempt itself after an unknown
outcome, or send too late.
"""

import asyncio

import backend
import http1
import relay

PLANTED = ("re-send", "retry-after-unknown", "stale-send")


class Pair(relay.Pair):
    request = b""  # The last request, as long as it has no response.
    is_resent = False

    def upwards(self, data):
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
        super().upwards(data)

    def note(self, data):
        self.relay.journal.add(
            "sent",
            id=http1.field(data, b"Idempotency-Request-Id"),
            record=backend.record(
                http1.field(data, b"Authorization"),
                data.split(b" ", 2)[1].decode(),
                http1.field(data, b"Idempotency-Key"),
            ),
            attempt=int(http1.field(data, b"Idempotency-Attempt")),
            node=self.relay.node,
        )

    def downwards(self, data):
        self.request = b""
        super().downwards(data)

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
        attempt = http1.field(self.request, b"Idempotency-Attempt")
        field = b"Idempotency-Attempt: "
        request = self.request.replace(field + attempt.encode(), field + b"%d" % (int(attempt) + 1))
        self.note(request)
        return request


class BackendRelay(relay.Relay):
    pair_type = Pair

    def __init__(self, name, target, dice, journal, node, bug, stale_after):
        super().__init__(name, target, dice, journal)
        self.node = node
        self.bug = bug
        self.stale_after = stale_after
