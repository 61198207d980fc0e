"""A backend with random behaviour, which records every request that it runs."""

import asyncio
import collections
import dataclasses
import hashlib
import json
import random

import batches
import http1


def script(seed, key, visit, trouble):
    """Returns the backend's behaviour on the n-th visit of a key, `(kind, luck)`, which depends on the seed alone."""
    dice = random.Random(f"{seed} {key} {visit}")
    fate = dice.random() * 100
    for kind, share in trouble.items():
        if fate < share:
            return kind, dice.random()
        fate -= share
    return "plain", dice.random()


# Shares of a hundred. Those of a healthy backend always apply: it, too, has errors and slow moments.
HEALTHY = {"busy": 2, "rejected": 1, "failed": 2, "slow": 5, "chunked": 5, "large": 1}
SICK = HEALTHY | {
    "unread": 4,
    "cut after": 4,
    "cut in response": 4,
    "late": 3,
    "late busy": 1,
    "stalled": 2,
    "gateway": 3,
    "late rejected": 1,
    "sent twice": 2,
    "farewell": 2,
    "mesh": 2,
    "cdn": 2,
    "cdn away": 1,
    "taken": 6,
}
# Over HTTP/2 many requests share a connection: most faults are a stream's own, and a cut affects others, too.
SICK2 = SICK | {
    "unread": 1,
    "cut after": 1,
    "cut in response": 1,
    "sent twice": 0,
    "farewell": 0,
    "refused": 4,
    "turned away": 1,
    "leaving": 1,
    "reset after": 3,
    "reset in response": 3,
}
# Unrequested bytes, which may reach nobody; and nothing may be held as unknown.
UNASKED = HEALTHY | {"sent twice": 15, "farewell": 15}
# Refusals, whose outcome is known: nothing may be held as unknown.
REFUSING = {"refused": 15, "turned away": 3, "leaving": 3}
# The kinds that are not run.
NOT_RUN = {"unread": "cut", "refused": "refuse", "turned away": "turn_away"}
# The kinds that are run, and whose response is lost.
LOST = ("cut after", "cut in response", "stalled", "reset after", "reset in response")
# The status and the class of each kind's outcome.
STATUS = {
    "busy": (503, "retry"),
    "late busy": (503, "retry"),
    "rejected": (401, "rejected"),
    "late rejected": (401, "rejected"),
    "failed": (500, "final"),
    "gateway": (502, "unknown"),
    "mesh": (503, "unknown"),
    "cdn": (520, "unknown"),
    "cdn away": (503, "unknown"),
}
# The fields by which an intermediary shows itself that has passed a request on and has lost its response: a mesh's
# sidecar, and a CDN's edge.
FIELDS = {
    "mesh": {"Server": "istio-envoy", "x-envoy-upstream-service-time": 3},
    "cdn away": {"Via": "1.1 varnish", "X-Served-By": "cache-fra-1"},
}
# The status by which a framework's unique column refuses what has run before, as kind "taken".
TAKEN = 422


@dataclasses.dataclass
class Request:
    path: str
    fields: dict  # Their names in lower case.
    body: bytes


@dataclasses.dataclass
class Response:
    status: int
    fields: dict
    body: bytes
    is_chunked: bool = False


# The path of queries about unknown outcomes, before the request's id, and the response about one that is not known.
LOOKUP = "/lookup/"
ABSENT = b'{"state": "absent"}'
# Of a run that there never was: whoever is given it was given another's.
STRAY_BODY = b'{"serial": -1, "print": "", "caller": "", "attempt": 1}'
STRAY = http1.response(201, {"X-Run": -1}, STRAY_BODY)
# Sent on an idle connection that is closed. If a request is on its way meanwhile, this cannot be distinguished from its
# response, and states by itself that the outcome is unknown. The request is not run.
FAREWELL = http1.response(502, {"Connection": "close"}, b"{}")


class Connection(asyncio.Protocol):
    """One of HTTP/1.1, and the exchange on it. `backend_http2` has those of HTTP/2."""

    def __init__(self, backend):
        self.backend = backend
        self.message = http1.Message()
        self.transport = None
        self.is_busy = False

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
            self.is_busy = True
            self.backend.take(self, Request(message.start.split(" ")[1], message.fields, message.body))

    @property
    def is_gone(self):
        return self.transport.is_closing()

    def cut(self):
        self.transport.abort()

    def finish(self, response, _serial):
        self.is_busy = False
        self.transport.write(http1.response(response.status, response.fields, response.body, response.is_chunked))

    def send_twice(self, response, _serial):
        """One more behind it, in one piece with it."""
        self.is_busy = False
        whole = http1.response(response.status, response.fields, response.body, response.is_chunked)
        self.transport.write(whole + STRAY)

    def bid_farewell(self):
        if not (self.is_gone or self.is_busy or self.message.buffer or self.message.start):
            self.transport.write(FAREWELL)
            self.transport.close()

    def cut_within(self, response, luck):
        whole = http1.response(response.status, response.fields, response.body, response.is_chunked)
        self.transport.write(whole[: 1 + int(luck * (len(whole) - 2))])
        asyncio.get_running_loop().call_later(luck * 0.05, self.transport.close)


class Backend:
    connection_type = Connection
    sick = SICK
    unasked = UNASKED

    def __init__(self, seed, journal, time_out):
        self.seed = seed
        self.journal = journal
        self.time_out = time_out  # After which Semel no longer waits for a response.
        self.shares = HEALTHY
        self.connections = set()
        self.serial = 0
        self.effects = {}  # The body of the run that may have had an effect, by the request's id.
        self.visits = collections.Counter()
        self.port = 0
        self.server = None

    async def start(self):
        loop = asyncio.get_running_loop()
        self.server = await loop.create_server(lambda: self.connection_type(self), "127.0.0.1", 0, backlog=1024)
        self.port = self.server.sockets[0].getsockname()[1]

    def stop(self):
        self.server.close()
        for connection in list(self.connections):
            connection.transport.abort()

    def take(self, exchange, request):
        if request.path.startswith(LOOKUP):
            return self.look_up(exchange, request.path.removeprefix(LOOKUP))
        key = request.fields["idempotency-key"]
        self.visits[key] += 1
        kind, luck = script(self.seed, key, self.visits[key], self.shares)
        if kind in NOT_RUN:
            return getattr(exchange, NOT_RUN[kind])()
        id_ = request.fields.get("idempotency-request-id")
        if kind == "taken" and id_ in self.effects:
            # Of the run that it is about, this is no outcome.
            body = json.dumps({"taken": json.loads(self.effects[id_])["serial"]}).encode()
            return exchange.finish(Response(TAKEN, {}, body), 0)
        serial = self.serial + 1
        run = self.run_batch if request.path == batches.PATH else self.run
        response = run(request, kind, luck)
        response.body += b" " * int(200_000 * luck if kind == "large" else 600 * luck)
        response.fields |= {"X-Run": serial} | FIELDS.get(kind, {})
        self.response(exchange, kind, luck, serial, response)
        return None

    def run(self, request, kind, _luck):
        attempt, id_ = int(request.fields["idempotency-attempt"]), request.fields["idempotency-request-id"]
        status, outcome = fate(kind)
        self.serial += 1
        print_ = hashlib.sha256(request.body).hexdigest()[:16]
        caller, key = request.fields["authorization"], request.fields["idempotency-key"]
        name = record(caller, request.path, key)
        self.note_run(id=id_, record=name, attempt=attempt, print=print_, status=status, outcome=outcome)
        body = json.dumps({"serial": self.serial, "print": print_, "caller": caller, "attempt": attempt}).encode()
        if outcome not in ("retry", "rejected"):
            self.effects[id_] = body
        return Response(status, {}, body, kind == "chunked")

    def run_batch(self, request, kind, luck):
        """Runs each item, whose attempt is named by the delivery that it came with."""
        caller, delivery = request.fields["authorization"], request.fields["idempotency-key"]
        items = batches.items(request.body)
        form = self.form_of_results(delivery)
        status, outcome = fate(kind)
        if outcome == "final" and status == 201 and not batches.fits(form, len(items)):
            outcome = "unknown"
        if {"idempotency-attempt", "idempotency-request-id"} & set(request.fields):
            self.journal.add("misfit", record=record(caller, request.path, delivery), text="has one attempt or id")
        first, results = self.serial + 1, []
        for key, print_ in items:
            self.serial += 1
            name = record(caller, request.path, key)
            self.note_run(
                id=None, record=name, attempt=delivery, print=print_, status=status, outcome=outcome, exchange=first
            )
            results.append({"id": key, "serial": self.serial, "print": print_, "caller": caller, "delivery": delivery})
        around = {"serial": first, "caller": caller, "delivery": delivery}
        if status != 201:
            around |= {"print": "", "batch": [[each["id"], each["serial"], each["print"]] for each in results]}
            return Response(status, {}, json.dumps(around).encode(), kind == "chunked")
        results[0]["text"] = "x" * int(100_000 * luck if kind == "large" else 300 * luck)
        fields = {"Content-Encoding": "gzip"} if form == "compressed" else {}
        return Response(status, fields, batches.response_body(form, results, around), kind == "chunked")

    def form_of_results(self, delivery):
        forms = batches.FITTING | (batches.ODD if self.shares is self.sick else {})
        return script(self.seed, f"{delivery} results", self.visits[delivery], forms)[0]

    def note_run(self, **fields):
        self.journal.add("ran", serial=self.serial, **fields)

    def look_up(self, exchange, id_):
        """States what became of a request, in troubled weather not always: then a gateway responds as well, with a 404
        of its own, whatever ran."""
        body = self.effects.get(id_)
        if self.shares is not HEALTHY and self.shares and random.random() < 0.2:
            return exchange.finish(Response(random.choice((404, 500)), {}, b"{}"), 0)
        fields = {"Content-Type": "application/json"}
        return exchange.finish(Response(200 if body else 404, fields, body or ABSENT), 0)

    def response(self, exchange, kind, luck, serial, response):
        later = asyncio.get_running_loop().call_later
        match kind:
            case "cut after":
                later(luck * 0.05, exchange.cut)
            case "cut in response":
                exchange.cut_within(response, luck)
            case "reset after":
                later(luck * 0.05, exchange.reset)
            case "reset in response":
                exchange.reset_within(response, luck)
            case "late" | "late busy" | "late rejected":
                later(self.time_out * (1.05 + luck * 0.7), self.finish, exchange, serial, response)
            case "slow":
                later(luck * self.time_out * 0.9, self.finish, exchange, serial, response)
            case "stalled":
                pass
            case "sent twice":
                self.journal.add("responded", serial=serial)
                exchange.send_twice(response, serial)
            case "farewell":
                self.finish(exchange, serial, response)
                later(luck * 0.3, exchange.bid_farewell)
            case _:
                if kind == "leaving":
                    exchange.leave()
                later(luck * 0.02, self.finish, exchange, serial, response)

    def finish(self, exchange, serial, response):
        if not exchange.is_gone:
            self.journal.add("responded", serial=serial)
            exchange.finish(response, serial)


def fate(kind):
    """The status and the class of a run of this kind."""
    status, outcome = STATUS.get(kind, (201, "final"))
    return status, "lost" if kind in LOST else outcome


def record(caller, path, key):
    """The name under which the logs of both ends know one record."""
    return f"{caller}|{path}|{key}"
