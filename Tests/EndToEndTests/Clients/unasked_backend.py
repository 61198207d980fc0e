"""An HTTP/1.1 backend that sends unrequested bytes, and prints the requests that it ran.

Arguments: the port, and for TLS a certificate, its key and the only version that is spoken ("1.2" or "1.3"). Prints
"ready", a line "connection N" for each connection, for each request "ran METHOD PATH KEY", and "sent PATH" once the
unrequested bytes have left.

A response is {"key":"KEY"} with the connection's number in X-Connection. The last segment of the path selects the
behaviour.
"""

import ctypes
import socket
import ssl
import struct
import sys
import threading
import time

lock = threading.Lock()
count = 0
STRAY = b"HTTP/1.1 200 OK\r\nContent-Length: 15\r\nContent-Type: text/plain\r\n\r\nsaid to nobody!"


def report(text):
    with lock:
        print(text, flush=True)


class Connection:
    def __init__(self, peer, raw):
        global count
        with lock:
            count += 1
            self.number = count
        report(f"connection {self.number}")
        self.socket, self.raw, self.buffer = peer, raw, b""

    def read_request(self):
        while b"\r\n\r\n" not in self.buffer:
            data = self.socket.recv(65536)
            if not data:
                return None
            self.buffer += data
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        line, *lines = head.decode().split("\r\n")
        fields = {name.lower(): value.strip() for name, value in (text.split(":", 1) for text in lines)}
        length = int(fields.get("content-length", 0))
        while len(self.buffer) < length:
            data = self.socket.recv(65536)
            if not data:
                return None
            self.buffer += data
        self.buffer = self.buffer[length:]
        return *line.split(" ")[:2], fields

    def run(self):
        try:
            while request := self.read_request():
                method, path, fields = request
                key = fields.get("idempotency-key", fields.get("x-name", "-"))
                report(f"ran {method} {path} {key}")
                if getattr(self, "do_" + path.split("/")[-1], self.do_order)(key, path):
                    break
        except (OSError, ValueError):
            pass
        finally:
            self.raw.close()

    def response(self, key, *fields, status="201 Created"):
        body = b'{"key":"%s"}' % key.encode()
        lines = [f"HTTP/1.1 {status}", f"X-Connection: {self.number}", "Content-Type: application/json", *fields]
        return "\r\n".join(lines).encode() + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body

    def do_order(self, key, path):
        self.socket.sendall(self.response(key))

    def do_late(self, key, path):
        """A second response when the connection is idle."""
        self.do_order(key, path)
        time.sleep(0.3)
        self.socket.sendall(STRAY)
        report(f"sent {path}")

    def do_leaving(self, key, path):
        """A balancer's farewell on an idle connection that it closes."""
        self.do_order(key, path)
        time.sleep(0.3)
        self.socket.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbad")
        report(f"sent {path}")
        return self.leave()

    def do_glued(self, key, path):
        """A second response behind the first, in one piece."""
        self.socket.sendall(self.response(key) + STRAY)
        report(f"sent {path}")

    def do_tail(self, key, path):
        """A second response at the heels of the first."""
        self.do_order(key, path)
        self.socket.sendall(STRAY)
        report(f"sent {path}")

    def do_ticket(self, key, path):
        """A session ticket on a connection that has been idle for a while (RFC 8446, section 4.6.1)."""
        self.do_order(key, path)
        time.sleep(0.3)
        ticket(self.socket)
        report(f"sent {path}")

    def do_trailers(self, key, path):
        self.socket.sendall(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 7\r\nSet-Cookie: a=b\r\n"
            b"Idempotency-Status: executed\r\nContent-Length: 2\r\nTransfer-Mode: x\r\n\r\n")

    def do_control(self, key, path):
        self.socket.sendall(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: a\x01b\r\n\r\n")

    def do_negotiate(self, key, path):
        self.socket.sendall(self.response(key, "WWW-Authenticate: Basic, NTLM abc", status="401 Unauthorized"))

    def do_short(self, key, path):
        """Cut within its length."""
        self.socket.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        return True

    def do_ended(self, key, path):
        """Ended by the connection, which under TLS nobody takes leave of: it may be cut."""
        self.socket.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall or half")
        return True

    def do_closed(self, key, path):
        """The same in order."""
        self.socket.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it")
        return self.leave()

    def do_aborted(self, key, path):
        """The same, ended by a reset: some of it may be lost."""
        self.socket.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall or half")
        time.sleep(0.3)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return True

    def do_whole(self, key, path):
        """Whole by its length, and then cut."""
        self.do_order(key, path)
        return True

    def leave(self):
        if isinstance(self.socket, ssl.SSLSocket):
            try:
                self.socket.settimeout(1)
                self.raw = self.socket.unwrap()
            except OSError:
                pass
        return True


def ticket(peer):
    """Python has no word for it: the SSL of a socket stands behind the object's head and its weak reference."""
    library = ctypes.CDLL("libssl.so.3")
    library.SSL_new_session_ticket.argtypes = library.SSL_do_handshake.argtypes = [ctypes.c_void_p]
    handle = ctypes.c_void_p.from_address(id(peer._sslobj) + 24).value
    assert library.SSL_new_session_ticket(handle) == 1 and library.SSL_do_handshake(handle) == 1


def serve(peer):
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        wrapped = context.wrap_socket(peer, server_side=True, suppress_ragged_eofs=True) if context else peer
    except OSError:
        return
    # A connection of TLS is closed without leave, unless somebody takes it.
    Connection(wrapped, wrapped).run()


context = None
if len(sys.argv) > 3:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2], sys.argv[3])
    version = ssl.TLSVersion.TLSv1_2 if sys.argv[4] == "1.2" else ssl.TLSVersion.TLSv1_3
    context.minimum_version = context.maximum_version = version
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=256)
report("ready")
while True:
    peer, _ = listener.accept()
    threading.Thread(target=serve, args=[peer], daemon=True).start()
