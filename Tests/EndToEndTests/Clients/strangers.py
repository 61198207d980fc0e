"""Makes connections that cost their client little: strangers.py PORT KIND COUNT ADDRESSES

COUNT connections from ADDRESSES addresses of the loopback (127.0.1.1 and on), of one KIND:

unread      a hundred small responses over HTTP/2, of which the client takes nothing
bodiless    a hundred requests over HTTP/2 without the end of their bodies, with heads of 58 KiB
block       an unfinished block of fields of 112 KiB over HTTP/2
head        an unfinished head of 60 KiB over HTTP/1.1
idle        one request with its response

Says "held BYTES", the number of bytes sent, and keeps what is left of the connections until it is killed.
"""

import resource
import signal
import socket
import struct
import sys

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def text(value):
    assert len(value) < 127
    return bytes([len(value)]) + value


def begin(window):
    return PREFACE + frame(4, 0, 0, struct.pack(">HI", 4, window))


def pseudo(method, path):
    return bytes([method, 0x86, 0x04]) + text(path) + b"\x01" + text(b"h")


def unread():
    head = pseudo(0x82, b"/.well-known/idempotency")
    return begin(0) + b"".join(frame(1, 5, 2 * n + 1, head) for n in range(100))


names = iter(range(1 << 30))


def bodiless():
    # One entry of the dynamic table, which each request names fifteen times.
    value = b"v" * 3900
    entry = b"\x40" + text(b"x-a") + b"\x7f" + bytes([(3900 - 127) & 127 | 128, (3900 - 127) >> 7]) + value
    def head(number):
        # Each is another caller's.
        name = b"%d-%d" % (next(names), number)
        fields = b"\x0f\x08" + text(b"Bearer " + name) + b"\x00" + text(b"idempotency-key") + text(name)
        return pseudo(0x83, b"/v1/orders") + fields

    first = frame(1, 4, 1, head(0) + entry + b"\xbe" * 14)
    return begin(0) + first + b"".join(frame(1, 4, 2 * n + 1, head(n) + b"\xbe" * 15) for n in range(1, 100))


def block():
    # A literal field whose value goes on.
    start = pseudo(0x82, b"/open") + b"\x00" + text(b"x-a") + b"\x7f\x80\xff\x07"
    rest = b"v" * (16 << 10)
    return begin(0) + frame(1, 0, 1, start + rest[len(start) :]) + frame(9, 0, 1, rest) * 6


def head():
    lines = b"".join(b"X-%d: " % n + b"v" * 12000 + b"\r\n" for n in range(5))
    return b"GET /open HTTP/1.1\r\nHost: h\r\n" + lines


def idle():
    return b"GET /.well-known/idempotency HTTP/1.1\r\nHost: h\r\n\r\n"


KINDS = {kind.__name__: kind for kind in (unread, bodiless, block, head, idle)}


def main():
    port, kind, count, addresses = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    held, sent = [], 0
    for number in range(count):
        source = f"127.0.1.{number % addresses + 1}"
        connection = socket.socket()
        # Unread responses would fill the kernel's buffers first.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.bind((source, 0))
        connection.settimeout(20)
        try:
            connection.connect(("127.0.0.1", port))
            data = KINDS[kind]()
            connection.sendall(data)
            sent += len(data)
            if kind == "idle":
                connection.recv(65536)
        except OSError:
            pass
        held.append(connection)
    print("held", sent, flush=True)
    signal.pause()


main()
