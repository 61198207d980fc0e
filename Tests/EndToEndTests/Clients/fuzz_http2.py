"""Generated HTTP/2 connections: valid ones with random changes in their frames and fields."""

import socket

# The maximum wait for responses, in seconds: a change may have left a stream without one.
PATIENCE = 3

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, END_HEADERS, PADDED, WITH_PRIORITY = 0x1, 0x4, 0x8, 0x20


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def text(data):
    """A string of HPACK as it is (RFC 7541, section 5.2)."""
    if len(data) < 127:
        return bytes([len(data)]) + data
    rest, length = len(data) - 127, b"\x7f"
    while rest >= 128:
        length += bytes([rest % 128 + 128])
        rest //= 128
    return length + bytes([rest]) + data


def block(fields):
    """Fields as literals without indexing."""
    return b"".join(b"\x00" + text(name) + text(value) for name, value in fields)


INNER = b"GET /inner HTTP/1.1\r\nHost: inner\r\n\r\n"
FIELDS = [
    (b"connection", b"x-id"), (b"transfer-encoding", b"chunked"), (b"te", b"gzip"), (b"te", b"trailers"),
    (b"content-length", b"0"), (b"content-length", b"4"), (b"content-length", b"+4"), (b"content-length", b"9" * 25),
    (b"host", b"other"), (b"host", b"h"), (b"upgrade", b"h2c"), (b"proxy-connection", b"keep-alive"), (b"X-Upper", b"a"),
    (b"x-split", b"a\r\nTransfer-Encoding: chunked"), (b"x-split", b"a\r\n\r\n" + INNER), (b"x-line", b"a\nb: c"), (b"x-nul", b"a\0b"),
    (b"x\r\nb", b"c"), (b"x: y", b"c"), (b"", b"c"), (b":late", b"c"), (b":path", b"/second"), (b":method", b"GET"),
    (b":status", b"200"), (b":protocol", b"websocket"), (b"x-white", b" a "), (b"cookie", b"a=1"), (b"cookie", b""), (b"expect", b"100-continue"),
    (b"via", b"1.1 other"), (b"x-forwarded-for", b"6.6.6.6"), (b"idempotency-attempt", b"9"), (b"x_forwarded_for", b"6.6.6.6"),
]
PSEUDO = {
    b":method": [b"", b"GET /x HTTP/1.1\r\nHost: i\r\n\r\nPOST", b"G T", b"CONNECT", b"get"],
    b":path": [b"", b"*", b"/a b", b"/a HTTP/1.1\r\nX: y", b"//h/x", b"http://other/x", b"/\xff", b"/a#b", b"/%2e%2e/x", b"/a%2fb"],
    b":scheme": [b"", b"https", b"ftp", b"h\r\n"],
    b":authority": [b"", b"h\r\nX: y", b"a@h", b"h:99999", b"other", b"h, i"],
}


def request(stream, identity, dice):
    """The frames of one request."""
    is_keyed = dice.random() < 0.5
    fields = [
        (b":method", dice.choice([b"POST", b"POST", b"PUT", b"GET", b"HEAD"])), (b":scheme", b"http"),
        (b":path", b"/v1/orders" if is_keyed else b"/open"), (b":authority", b"h"), (b"x-id", identity),
    ]
    if is_keyed:
        fields += [(b"authorization", identity), (b"idempotency-key", identity)]
    body = dice.choice([b"", b"abc", INNER, b"0\r\n\r\n" + INNER])
    if dice.random() < 0.4:
        fields.append((b"content-length", b"%d" % (len(body) + dice.choice([0, 0, 0, 0, 0, 1, -1]))))
    for _ in range(dice.choice([0, 0, 0, 0, 0, 1, 1, 2])):
        if dice.random() < 0.7:
            fields.insert(dice.randrange(len(fields) + 1), dice.choice(FIELDS))
        else:
            name = dice.choice(list(PSEUDO))
            fields = [(each, dice.choice(PSEUDO[name]) if each == name else value) for each, value in fields]
    head = block(fields)
    trailers = block([dice.choice([(b"x-sum", b"1"), *FIELDS])]) if dice.random() < 0.2 else None
    ends = not body and trailers is None
    cut = dice.randrange(len(head) + 1) if dice.random() < 0.3 else len(head)
    frames = [frame(HEADERS, END_STREAM * ends | END_HEADERS * (cut == len(head)), stream, head[:cut])]
    if cut < len(head):
        frames[0] += frame(CONTINUATION, END_HEADERS, stream, head[cut:])
    if body:
        at = dice.randrange(len(body) + 1)
        frames.append(frame(DATA, 0, stream, body[:at]))
        frames.append(frame(DATA, END_STREAM * (trailers is None), stream, body[at:]))
    if trailers is not None:
        frames.append(frame(HEADERS, END_STREAM | END_HEADERS, stream, trailers))
    return frames


def stray(dice):
    """A frame of any kind, anywhere."""
    sizes = {PRIORITY: 5, RST_STREAM: 4, SETTINGS: 6, PING: 8, GOAWAY: 8, WINDOW_UPDATE: 4}
    kind = dice.choice([*range(10), 0x20])
    size = sizes.get(kind, dice.randrange(20)) if dice.random() < 0.8 else dice.randrange(20)
    stream = dice.choice([0, 0, 1, 2, 3, 5, 2**31 - 1])
    return frame(kind, dice.choice([0, 0, 1, 4, 5, 8, 0x20, 0xFF]), stream, bytes(dice.randrange(256) for _ in range(size)))


def connection(identity, dice):
    """All bytes of a client's side of a connection, and how many streams it opens."""
    requests = [request(stream, identity, dice) for stream in range(1, 1 + 2 * dice.choice([1, 1, 2, 4]), 2)]
    # Sometimes at most one byte of each response is accepted.
    streams = len(requests)
    frames = [frame(SETTINGS, 0, 0, b"" if dice.random() < 0.98 else b"\x00\x04\x00\x00\x00\x01")]
    begun = 0
    while any(requests):
        # A stream begins after those with lower numbers, and goes on among them.
        number = dice.choice([at for at, each in enumerate(requests) if each and at <= begun])
        begun = max(begun, number + 1)
        frames.append(requests[number].pop(0))
    for _ in range(dice.choice([0, 0, 0, 0, 1, 1, 2])):
        at = dice.randrange(len(frames) + 1)
        way = dice.randrange(5)
        if way == 0:
            frames.insert(at, stray(dice))
        elif at == len(frames):
            continue
        elif way == 1:
            frames.insert(at, frames[at])
        elif way == 2:
            del frames[at]
        else:
            changed = bytearray(frames[at])
            changed[dice.randrange(9) if way == 3 else dice.randrange(len(changed))] = dice.randrange(256)
            frames[at] = bytes(changed)
    return PREFACE + b"".join(frames), streams


def frames_of(data):
    """Yields the kind, the flags and the payload of each whole frame."""
    while len(data) >= 9 and len(data) >= 9 + int.from_bytes(data[:3], "big"):
        length = int.from_bytes(data[:3], "big")
        yield data[3], data[4], data[9 : 9 + length]
        data = data[9 + length :]


def responded(connection, streams):
    """Returns the bytes until so many streams have ended. A client that closes earlier gets no further responses."""
    received = b""
    connection.settimeout(PATIENCE)
    try:
        while streams > sum(
            kind == RST_STREAM or kind in (DATA, HEADERS) and flags & END_STREAM for kind, flags, _ in frames_of(received)
        ) and (piece := connection.recv(65536)):
            received += piece
    except socket.timeout:
        pass
    connection.settimeout(20)
    return received


def responses(data):
    """Counts the responses with a body of the backend's, and the refusals of any kind."""
    given = refused = 0
    for kind, _, payload in frames_of(data):
        if kind == HEADERS:
            # The static table's statuses 200 and 204 (RFC 7541, appendix A).
            is_given = payload[:1] in (b"\x88", b"\x89")
            given, refused = given + is_given, refused + (not is_given)
        elif kind in (RST_STREAM, GOAWAY):
            refused += 1
    return given, refused
