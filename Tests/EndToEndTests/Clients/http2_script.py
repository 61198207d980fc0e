"""An HTTP/2 client that follows a test's script step by step, and prints the frames it received as JSON.

Arguments: where to connect (host:port, or host:port:CA for TLS), and the steps, a JSON list of lists.
"""

import json
import socket
import ssl
import struct
import sys
import time

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings

PATIENCE = 40


class Client:
    def __init__(self, place):
        host, port, *rest = place.split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=PATIENCE)
        if rest:
            # Without ALPN: HTTP/2 by prior knowledge.
            context = ssl.create_default_context(cafile=rest[0])
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        config = h2.config.H2Configuration(
            client_side=True, header_encoding="utf-8", validate_outbound_headers=False,
            normalize_outbound_headers=False)
        self.h2 = h2.connection.H2Connection(config)
        self.streams, self.goaways, self.closed, self.held = {}, [], False, set()
        self.is_silent, self.is_eager = False, False
        self.acknowledged = 0
        self.settings, self.inbound = {}, b""
        self.h2.initiate_connection()
        self.flush()

    def stream(self, number):
        return self.streams.setdefault(
            number, {"status": 0, "fields": {}, "interim": [], "length": 0, "frames": 0, "body": "", "trailers": {},
                     "reset": None, "ended": False})

    def flush(self):
        self.raw(self.h2.data_to_send())

    def raw(self, data):
        if self.is_silent:
            return
        try:
            self.socket.sendall(data)
        except OSError:
            # The server takes nothing more. What it sent before, a GOAWAY above all, can still be read.
            self.is_silent = True

    def receive(self, until):
        """Takes what comes until `until` is true or the connection ends."""
        deadline = time.monotonic() + PATIENCE
        while not until() and not self.closed:
            self.socket.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                data = self.socket.recv(65536)
            except TimeoutError:
                sys.exit(f"waited {PATIENCE} s in vain: {self.report()}")
            except OSError:
                data = b""
            if not data:
                self.closed = True
                return
            self.decode(data)

    def decode(self, data):
        """Hands h2 one frame after the other: after GOAWAY it would refuse what follows in the same bytes."""
        self.inbound += data
        while len(self.inbound) >= 9:
            length = 9 + int.from_bytes(self.inbound[:3], "big")
            if len(self.inbound) < length:
                break
            frame, self.inbound = self.inbound[:length], self.inbound[length:]
            try:
                events = self.h2.receive_data(frame)
            except h2.exceptions.ProtocolError as error:
                sys.exit(f"the server broke the protocol: {error}")
            for event in events:
                self.take(event)
        self.flush()

    def take(self, event):
        match event:
            case h2.events.RemoteSettingsChanged():
                for code, change in event.changed_settings.items():
                    self.settings[int(code)] = change.new_value
            case h2.events.InformationalResponseReceived():
                self.stream(event.stream_id)["interim"].append(int(dict(event.headers)[":status"]))
            case h2.events.ResponseReceived():
                fields = dict(event.headers)
                stream = self.stream(event.stream_id)
                stream["status"] = int(fields.pop(":status"))
                stream["fields"] = fields
            case h2.events.DataReceived():
                stream = self.stream(event.stream_id)
                stream["length"] += len(event.data)
                stream["frames"] += 1
                stream["body"] = (stream["body"] + event.data.decode("latin-1"))[:4096]
                if event.stream_id in self.held:
                    # Of this stream alone nothing is read: the connection's window stays open.
                    self.h2.increment_flow_control_window(max(event.flow_controlled_length, 1))
                elif self.is_eager and event.flow_controlled_length > 0 and event.stream_ended is None:
                    for stream_id in [None, event.stream_id]:
                        self.h2.increment_flow_control_window(event.flow_controlled_length, stream_id)
                else:
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            case h2.events.TrailersReceived():
                self.stream(event.stream_id)["trailers"] = dict(event.headers)
            case h2.events.StreamEnded():
                self.stream(event.stream_id)["ended"] = True
            case h2.events.StreamReset():
                self.stream(event.stream_id)["reset"] = int(event.error_code)
            case h2.events.PingAckReceived():
                self.acknowledged += 1
            case h2.events.ConnectionTerminated():
                self.goaways.append({"code": int(event.error_code), "last": event.last_stream_id})
                # h2 would refuse what still comes, though all that is below the last stream does.
                self.h2.state_machine.state = h2.connection.ConnectionState.CLIENT_OPEN

    def report(self):
        return {"streams": self.streams, "goaways": self.goaways, "closed": self.closed,
                "settings": self.settings}

    # The steps.

    def open(self, number, fields, end):
        self.stream(number)
        self.h2.send_headers(number, [tuple(field) for field in fields], end_stream=end)
        self.flush()

    def data(self, number, text, end):
        self.h2.send_data(number, text.encode(), end_stream=end)
        self.flush()

    def upload(self, number, size):
        """As much of so many bytes as the server takes; stops where its window stays shut for half a second."""
        sent = 0
        while sent < size and self.stream(number)["reset"] is None:
            room = min(self.h2.local_flow_control_window(number), self.h2.max_outbound_frame_size, size - sent)
            if room > 0:
                self.h2.send_data(number, b"x" * room)
                self.flush()
                sent += room
                continue
            self.socket.settimeout(0.5)
            try:
                data = self.socket.recv(65536)
            except TimeoutError:
                break
            self.decode(data)
        self.stream(number)["uploaded"] = sent

    def trailers(self, number, fields):
        self.h2.send_headers(number, [tuple(field) for field in fields], end_stream=True)
        self.flush()

    def reset(self, number):
        self.h2.reset_stream(number, 8)
        self.flush()

    def nameless(self, number, fields):
        """A request one of whose fields has an empty name."""
        block = self.h2.encoder.encode([tuple(field) for field in fields]) + b"\x00\x00\x01y"
        self.raw(len(block).to_bytes(3, "big") + b"\x01\x05" + struct.pack(">I", number) + block)

    def padded(self, first, count):
        """Requests beside frames of no meaning: 48 KiB a request, so that reads end within frames."""
        unknown = b"\x00\x40\x00\x42\x00\x00\x00\x00\x00" + b"x" * (16 << 10)
        fields = [(":method", "HEAD"), (":scheme", "http"), (":path", "/x"), (":authority", "a")]
        for number in range(first, first + 2 * count, 2):
            self.h2.send_headers(number, fields, end_stream=True)
            self.raw(self.h2.data_to_send() + 3 * unknown)
            self.response(number)

    def crumbs(self, streams):
        """A byte of each of many bodies, and frames of no meaning between them, all in one write."""
        unknown = b"\x00\x3e\x80\x42\x00\x00\x00\x00\x00" + b"x" * 16000
        bytes = b""
        for number, fields in streams:
            self.h2.send_headers(number, [tuple(field) for field in fields])
            self.h2.send_data(number, b"{")
            bytes += self.h2.data_to_send() + 4 * unknown
        self.raw(bytes)

    def burst(self, streams):
        """Requests at once, before anything is read, whose bodies come when most of them have been refused."""
        for number, fields in streams:
            self.stream(number)
            self.h2.send_headers(number, [tuple(field) for field in fields])
        self.flush()
        self.resets(len(streams) - 100)
        self.raw(b"".join(b"\x00\x00\x02\x00\x01" + struct.pack(">I", number) + b"{}" for number, _ in streams))

    def ping(self):
        """Waits until all that was sent has been read."""
        before = self.acknowledged
        self.h2.ping(b"all read")
        self.flush()
        self.receive(lambda: self.acknowledged > before)

    def half_close(self):
        """Sends nothing more, and reads on."""
        self.is_silent = True
        self.socket.shutdown(socket.SHUT_WR)

    def shut_windows(self):
        """From now on nothing of a body may come."""
        self.h2.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 0})
        self.flush()

    def pause(self, seconds):
        time.sleep(seconds)

    def ping_each(self, number, count):
        """Sends a PING for each DATA of a stream until so many are acknowledged, as gRPC does."""
        seen = 0
        while self.acknowledged < count and not self.closed:
            self.receive(lambda: self.stream(number)["frames"] > seen or self.acknowledged >= count)
            for _ in range(self.stream(number)["frames"] - seen):
                self.h2.ping(b"estimate")
            seen = self.stream(number)["frames"]
            self.flush()

    def priority_update(self, number):
        """As a browser sends it (RFC 9218, section 7.1)."""
        self.raw(b"\x00\x00\x07\x10\x00\x00\x00\x00\x00" + struct.pack(">I", number) + b"u=1")

    def update_each(self):
        """From now on sends a WINDOW_UPDATE for the stream and one for the connection for each DATA."""
        self.is_eager = True

    def hold(self, number):
        self.held.add(number)

    def note(self, text):
        print(text, flush=True)

    def head(self, number):
        self.receive(lambda: self.stream(number)["status"] or self.stream(number)["reset"] is not None)

    def interim(self, number):
        self.receive(lambda: self.stream(number)["interim"] or self.stream(number)["status"])

    def response(self, number):
        self.receive(lambda: self.stream(number)["ended"] or self.stream(number)["reset"] is not None)

    def bytes(self, number, count):
        self.receive(lambda: self.stream(number)["length"] >= count)

    def was_reset(self, number):
        self.receive(lambda: self.stream(number)["reset"] is not None)

    def resets(self, count):
        self.receive(lambda: sum(1 for stream in self.streams.values() if stream["reset"] is not None) >= count)

    def goaway(self, count):
        self.receive(lambda: len(self.goaways) >= count)

    def end(self):
        self.receive(lambda: False)

    def flood(self, kind, count):
        """Sends frames without end, or until the server has enough of them."""
        fields = [(":method", "GET"), (":scheme", "http"), (":path", "/x"), (":authority", "a")]
        for index in range(count):
            match kind:
                case "ping":
                    self.raw(b"\x00\x00\x08\x06\x00\x00\x00\x00\x00" + struct.pack(">Q", index))
                case "window_update":
                    self.raw(b"\x00\x00\x04\x08\x00\x00\x00\x00\x00\x00\x00\x00\x01")
                case "priority":
                    self.raw(b"\x00\x00\x05\x02\x00" + struct.pack(">I", 2 * index + 101) + b"\x00\x00\x00\x00\x10")
                case "priority_update":
                    self.priority_update(2 * index + 101)
                case "altsvc":
                    self.raw(b"\x00\x00\x06\x0a\x00\x00\x00\x00\x00\x00\x01ah=\"")
                case "origin":
                    self.raw(b"\x00\x00\x00\x0c\x00\x00\x00\x00\x00")
                case "unknown":
                    self.raw(b"\x00\x00\x00\x42\x00\x00\x00\x00\x00")
                case "settings":
                    self.raw(b"\x00\x00\x00\x04\x00\x00\x00\x00\x00")
                case "reset":
                    number = 2 * index + 1
                    self.h2.send_headers(number, fields, end_stream=True)
                    self.h2.reset_stream(number, 8)
                    self.flush()
                case "surplus":
                    # h2 itself keeps to the limit.
                    block = self.h2.encoder.encode(fields)
                    head = len(block).to_bytes(3, "big") + b"\x01\x05" + struct.pack(">I", 2 * index + 1001)
                    self.raw(head + block)
                case "empty":
                    self.raw(b"\x00\x00\x00\x00\x00" + struct.pack(">I", 1))
                case "continuation":
                    kind_and_flags = b"\x01\x00" if index == 0 else b"\x09\x00"
                    # A literal field without indexing: x: y.
                    self.raw(b"\x00\x00\x05" + kind_and_flags + struct.pack(">I", 1) + b"\x00\x01x\x01y")
            if self.is_silent:
                return


client = Client(sys.argv[1])
for name, *arguments in json.loads(sys.argv[2]):
    getattr(client, name)(*arguments)
print(json.dumps(client.report()))
