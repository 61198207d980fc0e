"""Random and mutated bytes of HTTP/1.1 and HTTP/2 through a proxy: fuzz_wire.py PROXY_PORT BACKEND_PORT SECONDS SEED [careless]

The backend stands in this process and reads strictly. Every request that it reads has to bear the marks that the proxy
puts on each request it sends (Via, X-Forwarded-For): one that does not was smuggled in the body or the fields of
another. It echoes the request, and no client may get the echo of another's request. A fault is reported with the bytes
that caused it; the same seed sends the same bytes. With "careless", a relay that copies bytes takes the proxy's place,
and must be found faulty.
"""

import random
import re
import socket
import sys
import threading
import time

import fuzz_http2

TOKEN = re.compile(rb"^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$")
REQUEST_LINE = re.compile(rb"^([!#$%&'*+\-.^_`|~0-9A-Za-z]+) ([\x21-\x7e\x80-\xff]+) HTTP/1\.1$")
IDENTITY = re.compile(rb"id-[0-9a-f]{16}")
CLIENTS = 6

faults = []
counts = {"connections": 0, "requests": 0, "responses": 0, "refused": 0, "responses2": 0, "refused2": 0}
counting = threading.Lock()


def count(name, by=1):
    with counting:
        counts[name] += by


class Fault(Exception):
    """Bytes that a strict reader rejects."""


class Stream:
    """A connection's bytes, read exactly."""

    def __init__(self, connection):
        self.connection, self.data = connection, b""

    def more(self):
        piece = self.connection.recv(65536)
        if not piece:
            raise EOFError
        self.data += piece

    def until(self, end):
        while end not in self.data:
            self.more()
        line, self.data = self.data.split(end, 1)
        return line

    def exactly(self, length):
        while len(self.data) < length:
            self.more()
        taken, self.data = self.data[:length], self.data[length:]
        return taken


def fields_of(lines):
    fields = []
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not TOKEN.match(name) or re.search(rb"[\x00-\x08\x0a-\x1f\x7f]", value):
            raise Fault(f"a field line {line!r}")
        fields.append((name.lower(), value.strip(b" \t")))
    return fields


def body_of(stream, fields):
    lengths = [value for name, value in fields if name == b"content-length"]
    codings = [value for name, value in fields if name == b"transfer-encoding"]
    if len(lengths) + len(codings) > 1:
        raise Fault("two framings")
    if lengths:
        if not re.match(rb"^[0-9]+$", lengths[0]):
            raise Fault(f"a length {lengths[0]!r}")
        return stream.exactly(int(lengths[0]))
    if not codings:
        return b""
    if codings[0].lower() != b"chunked":
        raise Fault(f"a coding {codings[0]!r}")
    body = b""
    while True:
        size = stream.until(b"\r\n").split(b";")[0]
        if not re.match(rb"^[0-9A-Fa-f]+$", size):
            raise Fault(f"a chunk's size {size!r}")
        if int(size, 16) == 0:
            while stream.until(b"\r\n"):
                pass
            return body
        body += stream.exactly(int(size, 16))
        if stream.exactly(2) != b"\r\n":
            raise Fault("a chunk's end")


def read_request(stream):
    """One request with the proxy's marks on it; its method and the identities in its head."""
    head = stream.until(b"\r\n\r\n").split(b"\r\n")
    line = REQUEST_LINE.match(head[0])
    if not line:
        raise Fault(f"a request line {head[0]!r}")
    fields = fields_of(head[1:])
    names = [name for name, _ in fields]
    vias = [value for name, value in fields if name == b"via" and value.endswith(b" semel")]
    forwarded = [value for name, value in fields if name == b"x-forwarded-for"]
    if len(vias) != 1 or forwarded != [b"127.0.0.1"]:
        raise Fault(f"a request without the proxy's marks {head!r}")
    if names.count(b"host") != 1:
        raise Fault(f"not one host {head!r}")
    body_of(stream, fields)
    return line.group(1), b" ".join(IDENTITY.findall(b" ".join(head)))


def response(method, identities, dice):
    """Returns a response that echoes the request, in a random framing."""
    interim = dice.choice([b"", b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"])
    if method == b"HEAD":
        return b"HTTP/1.1 200 OK\r\nX-Identities: %s\r\nContent-Length: 7\r\n\r\n" % identities, False
    way = dice.randrange(5)
    head = interim + b"HTTP/1.1 200 OK\r\nX-Identities: %s\r\n" % identities
    if way == 0:
        return head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(identities) + 1, identities + b"."), False
    if way == 1:
        return head + b"\r\n" + identities, True
    if way == 2:
        return interim + b"HTTP/1.1 204 No Content\r\nX-Identities: %s\r\n\r\n" % identities, False
    return head + b"Content-Length: %d\r\n\r\n" % len(identities) + identities, way == 3 and dice.random() < 0.2


def serve(connection, dice):
    stream = Stream(connection)
    try:
        while True:
            method, identities = read_request(stream)
            count("requests")
            reply, closes = response(method, identities, dice)
            connection.sendall(reply)
            if closes:
                return
    except (EOFError, OSError):
        pass
    except Fault as fault:
        faults.append(f"the backend read {fault}")
    finally:
        connection.close()


def listen(port, handle):
    listener = socket.create_server(("127.0.0.1", port), backlog=128)

    def accept():
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=handle, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


def careless(port, backend):
    """A relay that marks what comes first and copies all the rest."""

    def relay(connection):
        other = socket.create_connection(("127.0.0.1", backend))

        def back():
            try:
                while piece := other.recv(65536):
                    connection.sendall(piece)
            except OSError:
                pass

        threading.Thread(target=back, daemon=True).start()
        try:
            first = True
            while piece := connection.recv(65536):
                if first:
                    piece = piece.replace(b"\r\n", b"\r\nVia: 1.1 semel\r\nX-Forwarded-For: 127.0.0.1\r\n", 1)
                first = False
                other.sendall(piece)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    listen(port, relay)


def requests(identity):
    """Good requests, of which the bad ones are made; each body holds what would like to be a request."""
    inner = b"GET /inner HTTP/1.1\r\nHost: inner\r\nX-Id: %s\r\n\r\n" % identity
    common = b"Host: h\r\nX-Id: %s\r\n" % identity
    keyed = common + b"Authorization: %s\r\nIdempotency-Key: %s\r\n" % (identity, identity)
    chunk = b"%x\r\n%s\r\n" % (len(inner), inner)
    for path, more in ((b"/open", common), (b"/v1/orders", keyed)):
        yield b"GET %s HTTP/1.1\r\n%s\r\n" % (path, more)
        yield b"HEAD %s HTTP/1.1\r\n%s\r\n" % (path, more)
        yield b"POST %s HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n%s" % (path, more, len(inner), inner)
        yield b"POST %s HTTP/1.1\r\n%sTransfer-Encoding: chunked\r\n\r\n%s0\r\n\r\n" % (path, more, chunk)
        yield b"PUT %s HTTP/1.1\r\n%sTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n%s0\r\nX-T: 1\r\n\r\n" % (path, more, chunk)
        yield b"POST %s HTTP/1.0\r\n%sConnection: keep-alive\r\nContent-Length: 3\r\n\r\nabc" % (path, more)
        yield b"POST %s HTTP/1.1\r\n%sExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc" % (path, more)
        yield b"DELETE http://h%s?a=%%41 HTTP/1.1\r\n%sConnection: X-Id, close\r\n\r\n" % (path, more)


PIECES = [
    b"\r", b"\n", b"\r\n", b"\r\n\r\n", b"\0", b" ", b"\t", b"\x0b", b"\x0c", b"\x85", b"\xff", b":", b",", b";", b"0", b"0\r\n\r\n",
    b"Content-Length: 0\r\n", b"Content-Length: 4\r\n", b"Content-Length : 4\r\n", b"Content-Length: +4\r\n",
    b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding : chunked\r\n", b"Transfer-Encoding:\x0bchunked\r\n",
    b"Transfer-Encoding: identity\r\n", b"Transfer-Encoding\r\n : chunked\r\n", b"transfer_encoding: chunked\r\n",
    b"X: a\r\n Transfer-Encoding: chunked\r\n", b"Connection: Content-Length\r\n", b"Connection: Transfer-Encoding, Host\r\n",
    b"Connection: Via, X-Forwarded-For\r\n", b"Upgrade: h2c\r\n", b"Host: other\r\n", b"Trailer: Content-Length\r\n",
    b"GET /inner HTTP/1.1\r\nHost: inner\r\n\r\n", b"HTTP/1.1", b"HTTP/0.9", b"ffffffffffffffff\r\n", b"-1\r\n", b"0x3\r\n",
]


def mutate(data, dice):
    for _ in range(dice.choice([0, 1, 1, 1, 2, 3, 6])):
        at = dice.randrange(len(data) + 1)
        lines = [match.start() + 2 for match in re.finditer(rb"\r\n", data)] or [0]
        way = dice.randrange(7)
        if way == 0:
            data = data[:at] + dice.choice(PIECES) + data[at:]
        elif way in (1, 2):
            line = dice.choice(lines)
            data = data[:line] + dice.choice(PIECES) + data[line:]
        elif way == 3:
            data = data[:at] + data[at + dice.choice([1, 1, 2, 8]) :]
        elif way == 4:
            data = data[:at] + bytes([dice.randrange(256)]) + data[at + 1 :]
        elif way == 5:
            first, last = sorted((dice.choice(lines), dice.choice(lines)))
            data = data[:last] + data[first:last] + data[last:]
        else:
            data = re.sub(rb"[0-9]+(?=\r\n)", lambda _: b"%d" % dice.choice([0, 1, 3, 5, 70, 10**20]), data, count=1)
    return data


def fuzz(port, seed, number, known, speaks_http2):
    dice = random.Random(f"{seed}-{number}")
    identity = b"id-%016x" % dice.getrandbits(64)
    known.add(identity)
    is_http2 = speaks_http2 and number % 3 == 0
    if is_http2:
        data, streams = fuzz_http2.connection(identity, dice)
    else:
        data = b"".join(mutate(dice.choice(list(requests(identity))), dice) for _ in range(dice.choice([1, 1, 2, 3])))
    received = b""
    connection = socket.create_connection(("127.0.0.1", port), 20)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        cuts = sorted(dice.randrange(len(data) + 1) for _ in range(dice.choice([0, 0, 1, 3])))
        for start, end in zip([0] + cuts, cuts + [len(data)]):
            connection.sendall(data[start:end])
        if is_http2:
            received = fuzz_http2.responded(connection, streams)
        connection.shutdown(socket.SHUT_WR)
        while piece := connection.recv(65536):
            received += piece
    except TimeoutError:
        faults.append(f"no end after {data!r}")
    except OSError:
        pass  # It was cut off.
    finally:
        connection.close()
    count("connections")
    if is_http2:
        given, refused = fuzz_http2.responses(received)
        count("responses2", given)
        count("refused2", refused)
    count("responses", received.count(b"HTTP/1.1 2"))
    count("refused", received.count(b"HTTP/1.1 4") + received.count(b"HTTP/1.1 5"))
    strangers = [other for other in IDENTITY.findall(received) if other != identity and other in known]
    if strangers:
        faults.append(f"{data!r} got the words of another: {received!r}")
    return data


def main():
    port, backend, seconds, seed = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
    responses = random.Random(seed)
    listen(backend, lambda connection: serve(connection, responses))
    is_careless = sys.argv[5:] == ["careless"]
    if is_careless:
        careless(port, backend)
    end, known, recent = time.monotonic() + seconds, set(), []

    def client(first):
        number = first
        while time.monotonic() < end and not faults:
            recent.append(fuzz(port, seed, number, known, not is_careless))
            del recent[: -4 * CLIENTS]
            number += CLIENTS

    clients = [threading.Thread(target=client, args=(first,)) for first in range(CLIENTS)]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()
    print("seed", seed, *(f"{name}={figure}" for name, figure in counts.items()), flush=True)
    for fault in faults:
        print("FAULT:", fault)
    if faults:
        print("recently sent:", *map(repr, list(recent)), sep="\n  ")
    sys.exit(1 if faults else 0)


main()
