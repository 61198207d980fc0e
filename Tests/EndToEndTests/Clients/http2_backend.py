"""A backend of HTTP/2 that does frame by frame what a path asks for, and prints what it ran.

Arguments: the port, for TLS a certificate and its key, and what it says of itself: "streams=N" for how many it takes at
once, "window=N" for how much of a body, "table=N" for the size of its table of fields; with "mean=1" it never takes
more than the first 65,535 bytes of all bodies. "heads=N" is for the size of heads; then it also speaks HTTP/1.1 under TLS.
Prints "ready", a line "connection N" for each connection, for each request that
came whole "ran METHOD PATH KEY BYTES", "reset PATH CODE" for each that was given up, "sent PATH" for what nobody asked
for, and "pinged N".
"""

import socket
import ssl
import sys
import threading
import time

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.settings

lock = threading.Lock()
count = {"connections": 0, "requests": 0}


def report(text):
    with lock:
        print(text, flush=True)


class Connection:
    def __init__(self, peer):
        with lock:
            count["connections"] += 1
            self.number = count["connections"]
        report(f"connection {self.number}")
        self.socket = peer
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        self.requests, self.closed, self.silent, self.broken = {}, False, False, None
        self.h2.local_settings = h2.settings.Settings(client=False, initial_values=announced)
        self.h2.initiate_connection()
        if announced.get(WINDOW) and "mean" not in options:
            self.h2.increment_flow_control_window(1 << 30)
        self.flush()

    def flush(self):
        if self.silent:
            return
        self.socket.sendall(self.h2.data_to_send())

    def run(self):
        try:
            while not self.closed and (data := self.socket.recv(65536)):
                for event in self.h2.receive_data(data):
                    self.take(event)
                if not self.closed:
                    self.flush()
        except OSError:
            pass
        finally:
            self.socket.close()
            report(f"closed {self.number}")

    def take(self, event):
        match event:
            case h2.events.RequestReceived():
                fields = dict(event.headers)
                self.requests[event.stream_id] = {"fields": fields, "body": bytearray(), "trailers": {}}
                early = getattr(self, "early_" + fields[":path"].split("/")[-1], None)
                if early:
                    early(event.stream_id)
            case h2.events.DataReceived():
                self.requests[event.stream_id]["body"] += event.data
                if WINDOW not in announced and "mean" not in options:
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            case h2.events.StreamReset():
                path = self.requests[event.stream_id]["fields"][":path"]
                report(f"reset {path} {event.error_code}")
                if event.stream_id == self.broken:
                    self.do_order(*self.held)
            case h2.events.PingReceived():
                report(f"pinged {self.number}")
            case h2.events.TrailersReceived():
                self.requests[event.stream_id]["trailers"] = dict(event.headers)
            case h2.events.StreamEnded():
                request = self.requests[event.stream_id]
                fields = request["fields"]
                with lock:
                    count["requests"] += 1
                    request["number"] = count["requests"]
                report(f"ran {fields[':method']} {fields[':path']} {fields.get('idempotency-key', '-')} "
                    f"{len(request['body'])}")
                name = fields[":path"].split("/")[-1].split("?")[0]
                getattr(self, "do_" + name, self.do_order)(event.stream_id, request)

    def head(self, stream, status, *fields, end=False):
        self.h2.send_headers(stream, [(":status", str(status)), *fields], end_stream=end)

    def do_order(self, stream, request):
        body = b'{"order":%d}' % request["number"]
        self.head(stream, 201, ("content-type", "application/json"), ("content-length", str(len(body))),
                  ("x-connection", str(self.number)), ("x-te", request["fields"].get("te", "-")),
                  ("x-table", str(self.h2.decoder.header_table_size)))
        self.h2.send_data(stream, b"" if request["fields"][":method"] == "HEAD" else body, end_stream=True)

    def do_silent(self, stream, request):
        """From here on nothing is sent on this connection, though all is read."""
        self.silent = True

    def do_fading(self, stream, request):
        """Begins a response, and falls silent."""
        self.do_begun(stream, request)
        self.flush()
        self.silent = True

    def do_slow(self, stream, request):
        """Responds at the second PING."""
        self.slow = stream, request

    def later(self, stream, target, path):
        """A whole response to nobody, 0.3 s after the connection has become idle."""
        block = self.h2.encoder.encode([(":status", "200"), ("content-length", "15")])
        head = len(block).to_bytes(3, "big") + b"\x01\x04" + target.to_bytes(4, "big") + block
        body = b"\x00\x00\x0f\x00\x01" + target.to_bytes(4, "big") + b"sent to nobody!"
        time.sleep(0.3)
        self.socket.sendall(head + body)
        report(f"sent {path}")

    def do_late(self, stream, request):
        """On the stream that has ended."""
        self.do_order(stream, request)
        self.flush()
        self.later(stream, stream, request["fields"][":path"])

    def do_ahead(self, stream, request):
        """On the stream that will be next."""
        self.do_order(stream, request)
        self.flush()
        self.later(stream, stream + 2, request["fields"][":path"])

    def do_negotiate(self, stream, request):
        self.head(stream, 401, ("www-authenticate", "Negotiate"), ("x-connection", str(self.number)), end=True)

    def do_calm(self, stream, request):
        """Nothing was taken, it says, as NIO does to peers that misbehave: but it ran."""
        self.h2.close_connection(h2.errors.ErrorCodes.ENHANCE_YOUR_CALM, last_stream_id=0)
        self.cut()

    def do_held(self, stream, request):
        """Responds with the next "gone" of its connection."""
        self.held = stream, request

    def do_gone(self, stream, request):
        """Takes no more streams, and responds to those that it has. h2 itself would end them."""
        self.flush()
        self.socket.sendall(b"\x00\x00\x08\x07\x00" + bytes(4) + stream.to_bytes(4, "big") + bytes(4))
        self.do_order(*self.held)
        self.do_order(stream, request)

    def broke(self, stream, frame):
        """Breaks the rules of one stream. What is "held" gets its response once this stream has been reset."""
        self.broken = stream
        self.socket.sendall(frame[:5] + stream.to_bytes(4, "big") + frame[5:])

    def early_swollen(self, stream):
        """The window grows beyond its maximum."""
        self.broke(stream, b"\x00\x00\x04\x08\x00" + b"\x7f\xff\xff\xff")

    def do_headless(self, stream, request):
        """A body before any head."""
        self.broke(stream, b"\x00\x00\x04\x00\x01" + b"body")

    def do_unended(self, stream, request):
        """Trailers that end nothing."""
        self.head(stream, 200)
        self.flush()
        block = self.h2.encoder.encode([("x-sum", "a")])
        self.broke(stream, len(block).to_bytes(3, "big") + b"\x01\x04" + block)

    def do_denied(self, stream, request):
        """Responds, and then states that it has taken no stream at all."""
        self.do_order(stream, request)
        self.flush()
        self.socket.sendall(b"\x00\x00\x08\x07\x00" + bytes(12))

    def do_head(self, stream, request):
        self.head(stream, 200, ("content-length", "5"), end=True)

    def do_empty(self, stream, request):
        self.head(stream, 204, ("x-number", str(request["number"])), end=True)

    def do_unchanged(self, stream, request):
        self.head(stream, 304, ("etag", '"a"'), end=True)

    def do_trailers(self, stream, request):
        """Trailers behind a body whose length is known."""
        self.head(stream, 200, ("content-length", "4"))
        self.h2.send_data(stream, b"body")
        self.h2.send_headers(stream, [("x-sum", str(request["number"]))], end_stream=True)

    def do_filtered(self, stream, request):
        """Trailers that nobody may get."""
        self.head(stream, 200)
        self.h2.send_data(stream, b"body")
        self.frame(stream, 5, ("x-sum", str(request["number"])), ("set-cookie", "a=b"), ("content-length", "4"),
                   ("idempotency-status", "executed"), ("idempotent-replayed", "true"), ("age", "7"))

    def do_control(self, stream, request):
        """A control byte in a trailer."""
        self.head(stream, 200)
        self.h2.send_data(stream, b"body")
        self.frame(stream, 5, ("x-sum", "a\x01b"))

    def frame(self, stream, flags, *fields):
        """A frame HEADERS as it is: h2 itself would refuse some fields and take off others."""
        self.flush()
        block = self.h2.encoder.encode(fields)
        self.socket.sendall(
            len(block).to_bytes(3, "big") + bytes([1, flags]) + stream.to_bytes(4, "big") + block)

    def do_open(self, stream, request):
        """Trailers behind a body whose length is not."""
        self.head(stream, 200)
        self.h2.send_data(stream, b"body")
        self.h2.send_headers(stream, [("x-sum", str(request["number"]))], end_stream=True)

    def do_refused(self, stream, request):
        self.h2.reset_stream(stream, h2.errors.ErrorCodes.REFUSED_STREAM)

    def early_spurned(self, stream):
        """Refused at its head, while the rest of its body waits for the window."""
        self.h2.reset_stream(stream, h2.errors.ErrorCodes.REFUSED_STREAM)

    def do_contradicted(self, stream, request):
        """Begins a response, and then states that it processed nothing."""
        self.head(stream, 200)
        self.do_refused(stream, request)

    def do_malformed(self, stream, request):
        """A field that HTTP/2 does not have."""
        self.frame(stream, 5, (":status", "200"), ("connection", "close"))

    def do_cancelled(self, stream, request):
        self.h2.reset_stream(stream, h2.errors.ErrorCodes.CANCEL)

    def do_stopped(self, stream, request):
        """A reset that calls itself no error, in the middle of the body."""
        self.head(stream, 200)
        self.h2.send_data(stream, b"half")
        self.h2.reset_stream(stream, h2.errors.ErrorCodes.NO_ERROR)

    def do_short(self, stream, request):
        """A stream that ends in order, before its length."""
        self.head(stream, 200, ("content-length", "100"))
        self.flush()
        # h2 itself would refuse to: a frame DATA of four bytes with END_STREAM.
        self.socket.sendall(b"\x00\x00\x04\x00\x01" + stream.to_bytes(4, "big") + b"half")

    def do_goaway(self, stream, request):
        """All that is above the stream before this one was not taken, it says, though it ran."""
        self.h2.close_connection(h2.errors.ErrorCodes.NO_ERROR, last_stream_id=max(stream - 2, 0))
        self.cut()

    def do_leaving(self, stream, request):
        """Responds, and sends GOAWAY."""
        self.do_order(stream, request)
        self.h2.close_connection(h2.errors.ErrorCodes.NO_ERROR, last_stream_id=stream)
        self.cut()

    def do_cut(self, stream, request):
        self.cut()

    def do_half(self, stream, request):
        self.head(stream, 200)
        self.h2.send_data(stream, b"half")
        self.cut()

    def do_crumbs(self, stream, request):
        """A body byte by byte, and 40 MiB of frames of no meaning between its bytes."""
        self.head(stream, 200, ("content-length", "640"))
        self.flush()
        unknown = b"\x00\x40\x00\x42\x00\x00\x00\x00\x00" + b"x" * (16 << 10)
        byte = b"\x00\x00\x01\x00\x00" + stream.to_bytes(4, "big") + b"x"
        for _ in range(639):
            self.socket.sendall(byte + 4 * unknown)
        self.socket.sendall(byte[:4] + b"\x01" + byte[5:])

    def do_begun(self, stream, request):
        self.head(stream, 200)
        self.h2.send_data(stream, b"some")

    def do_hints(self, stream, request):
        self.head(stream, 103, ("link", "</style.css>; rel=preload"))
        self.flush()
        self.head(stream, 200, ("content-length", "2"))
        self.h2.send_data(stream, b"ok", end_stream=True)

    def do_endless(self, stream, request):
        """Interim responses, of which no client wants so many."""
        for _ in range(200):
            for _ in range(100):
                self.head(stream, 103, ("link", f"</{'a' * 900}.css>"))
            self.flush()
        report("hinted")
        self.head(stream, 200, ("content-length", "2"))
        self.h2.send_data(stream, b"ok", end_stream=True)

    def early_early(self, stream):
        """Sends the whole response while the request is still arriving."""
        self.head(stream, 200, ("content-type", "text/plain"))
        self.h2.send_data(stream, b"early")
        self.h2.send_headers(stream, [("x-sum", "early")], end_stream=True)
        # RFC 9113, section 8.1: the client need not send the rest.
        self.h2.reset_stream(stream, h2.errors.ErrorCodes.NO_ERROR)

    def early_stuck(self, stream):
        """Reads nothing of its connection for a while, and no longer than a PING may stay without a read."""
        report("stuck")
        time.sleep(9)

    def early_measured(self, stream):
        """The same without trailers, and with a length."""
        self.head(stream, 200, ("content-type", "text/plain"), ("content-length", "5"))
        self.h2.send_data(stream, b"early", end_stream=True)
        self.h2.reset_stream(stream, h2.errors.ErrorCodes.NO_ERROR)

    def early_plain(self, stream):
        """The same with neither."""
        self.head(stream, 200, ("content-type", "text/plain"))
        self.h2.send_data(stream, b"early", end_stream=True)
        self.h2.reset_stream(stream, h2.errors.ErrorCodes.NO_ERROR)

    def do_early(self, stream, request):
        pass

    do_measured = do_plain = do_early

    def cut(self):
        self.flush()
        self.closed = True
        # Under TLS too without taking leave.
        socket.socket.shutdown(self.socket, socket.SHUT_RDWR)


def serve(peer):
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if context:
        peer = context.wrap_socket(peer, server_side=True)
        if peer.selected_alpn_protocol() == "http/1.1":
            return serve_http1(peer)
    Connection(peer).run()


def serve_http1(peer):
    """Responds to every request with the version in the body."""
    stream = peer.makefile("rb")
    while stream.readline():
        length = 0
        while (line := stream.readline()).strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        stream.read(length)
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nHTTP/1.1")


STREAMS = h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS
WINDOW = h2.settings.SettingCodes.INITIAL_WINDOW_SIZE
TABLE = h2.settings.SettingCodes.HEADER_TABLE_SIZE
options = dict(word.split("=") for word in sys.argv[1:] if "=" in word)
HEADS = h2.settings.SettingCodes.MAX_HEADER_LIST_SIZE
codes = {"streams": STREAMS, "window": WINDOW, "table": TABLE, "heads": HEADS}
announced = {code: int(options[name]) for name, code in codes.items() if name in options}
context = None
if len(sys.argv) > 3:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2], sys.argv[3])
    context.set_alpn_protocols(["h2", "http/1.1"] if "heads" in options else ["h2"])
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=256)
report("ready")
while True:
    peer, _ = listener.accept()
    threading.Thread(target=serve, args=[peer], daemon=True).start()
