"""The backend over HTTP/2: many exchanges on one connection, and the faults that only a stream has."""

import asyncio
import collections

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions

import backend

# The time, in seconds, before the cut of a connection within which written bytes may be lost with it.
IN_FLIGHT = 0.25


def frame(kind, flags, stream, payload):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


class Stream:
    """One exchange."""

    def __init__(self, connection, number, fields):
        self.connection = connection
        self.number = number
        self.fields = fields
        self.body = bytearray()
        self.unsent = b""  # Of the response: what its window does not let through.
        self.is_gone = False
        self.repeats = False  # Whether a second response follows on the stream, which has ended.

    def whole(self):
        path = self.fields.pop(":path")
        return backend.Request(path, self.fields, bytes(self.body))

    def cut(self):
        self.connection.cut()

    def finish(self, response, serial):
        self.connection.responded.append((asyncio.get_running_loop().time(), serial))
        self.begin(response)
        self.unsent = response.body
        self.connection.send(self)

    def send_twice(self, response, serial):
        self.repeats = True
        self.finish(response, serial)

    def bid_farewell(self):
        """A response on an idle connection, to a stream that has ended."""
        if not self.connection.streams:
            self.connection.speak_unasked(self.number)

    def begin(self, response):
        fields = [(":status", str(response.status)), ("content-type", "application/json")]
        fields += [(name.lower(), str(value)) for name, value in response.fields.items()]
        if not response.is_chunked:
            fields.append(("content-length", str(len(response.body))))
        self.connection.h2.send_headers(self.number, fields)

    def begin_within(self, response, luck):
        """Sends the head of a response, and a part of its body that fits every window."""
        self.begin(response)
        part = response.body[: int(luck * min(len(response.body), 4096))]
        room = self.connection.h2.local_flow_control_window(self.number)
        self.connection.h2.send_data(self.number, part[: max(room, 0)])

    def cut_within(self, response, luck):
        if not self.is_gone:
            self.connection.flush()
            self.begin_within(response, luck)
            self.connection.cut_within(luck)

    def reset_within(self, response, luck):
        if not self.is_gone:
            self.begin_within(response, luck)
            self.connection.flush()
            asyncio.get_running_loop().call_later(luck * 0.05, self.reset)

    def reset(self, code=h2.errors.ErrorCodes.INTERNAL_ERROR):
        if not self.is_gone:
            self.is_gone = True
            self.connection.h2.reset_stream(self.number, code)
            self.connection.flush()

    def refuse(self):
        """Refuses the stream, which was indeed not run."""
        self.reset(h2.errors.ErrorCodes.REFUSED_STREAM)

    def turn_away(self):
        """Says so of this and all later ones. Not where a later one has been run: that would be a lie."""
        if self.number < self.connection.greatest:
            return self.refuse()
        return self.connection.leave(max(self.number - 2, 0))

    def leave(self):
        """Takes no more after those that it has run, this one among them."""
        self.connection.leave(max(self.connection.greatest, self.number))


class Connection(asyncio.Protocol):
    def __init__(self, backend_):
        self.backend = backend_
        self.transport = None
        config = h2.config.H2Configuration(client_side=False, header_encoding="utf-8")
        self.h2 = h2.connection.H2Connection(config)
        self.streams = {}
        self.greatest = 0  # The number of the greatest stream that was run.
        self.last = float("inf")  # That of the greatest that will be.
        self.responded = collections.deque(maxlen=500)
        self.is_mute = False  # In the middle of a frame, or gone.

    def connection_made(self, transport):
        self.transport = transport
        self.backend.connections.add(self)
        self.h2.initiate_connection()
        self.flush()

    def connection_lost(self, error):
        self.backend.connections.discard(self)
        self.fall_mute()

    def fall_mute(self):
        self.is_mute = True
        for stream in self.streams.values():
            stream.is_gone = True

    def data_received(self, data):
        if self.is_mute:
            return
        for event in self.h2.receive_data(data):
            self.received(event)
        self.flush()

    def received(self, event):
        match event:
            case h2.events.RequestReceived():
                self.streams[event.stream_id] = Stream(self, event.stream_id, dict(event.headers))
            case h2.events.DataReceived():
                self.streams[event.stream_id].body += event.data
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            case h2.events.StreamEnded():
                # Nothing more is sent on a stream that was turned away.
                if event.stream_id <= self.last and not self.is_mute:
                    self.take(self.streams[event.stream_id])
            case h2.events.StreamReset():
                if event.stream_id in self.streams:
                    self.streams[event.stream_id].is_gone = True
            case h2.events.ConnectionTerminated():
                # Semel's reply to unasked frames. It still waits for its responses, which h2 would not send.
                self.h2.state_machine.state = h2.connection.ConnectionState.SERVER_OPEN
            case h2.events.WindowUpdated():
                for stream in list(self.streams.values()):
                    self.send(stream)

    def take(self, stream):
        before = self.backend.serial
        self.backend.take(stream, stream.whole())
        if self.backend.serial > before:
            self.greatest = max(self.greatest, stream.number)

    def send(self, stream):
        """Sends as much of the response as the window allows."""
        while stream.unsent and not stream.is_gone:
            room = min(self.h2.local_flow_control_window(stream.number), self.h2.max_outbound_frame_size)
            if room <= 0:
                break
            piece, stream.unsent = stream.unsent[:room], stream.unsent[room:]
            self.h2.send_data(stream.number, piece, end_stream=not stream.unsent)
            if not stream.unsent:
                stream.is_gone = True
                del self.streams[stream.number]
                if stream.repeats:
                    self.speak_unasked(stream.number)
        self.flush()

    def speak_unasked(self, number):
        """A whole response on a stream that has ended. h2 itself would refuse to."""
        self.flush()
        if not self.is_mute and self.h2.outbound_flow_control_window >= len(backend.STRAY_BODY):
            self.h2.outbound_flow_control_window -= len(backend.STRAY_BODY)
            block = self.h2.encoder.encode([(":status", "201"), ("x-run", "-1")])
            self.transport.write(frame(1, 4, number, block) + frame(0, 1, number, backend.STRAY_BODY))

    def flush(self):
        data = self.h2.data_to_send()
        if data and not self.is_mute:
            self.transport.write(data)

    def leave(self, last):
        """Sends GOAWAY. h2 itself would end the streams that have no response yet."""
        if self.is_mute:
            return
        self.flush()
        self.last = min(self.last, last)
        payload = int(self.last).to_bytes(4, "big") + bytes(4)
        self.transport.write(frame(7, 0, 0, payload))

    def cut(self):
        if not self.is_mute:
            self.note_lost()
            self.fall_mute()
            self.transport.abort()

    def cut_within(self, luck):
        """Only a part of what there is to send leaves, and then nothing more."""
        data = self.h2.data_to_send()
        self.transport.write(data[: 1 + int(luck * (len(data) - 2))])
        self.note_lost()
        self.fall_mute()
        asyncio.get_running_loop().call_later(luck * 0.05, self.transport.close)

    def note_lost(self):
        """Notes that the other streams' requests and responses on this connection are lost, too."""
        self.backend.journal.add("fault", name="backend: cuts a connection")
        now = asyncio.get_running_loop().time()
        for at, serial in self.responded:
            if now - at < IN_FLIGHT:
                self.backend.journal.add("lost", serial=serial)


class Backend(backend.Backend):
    connection_type = Connection
    sick = backend.SICK2
    unasked = backend.UNASKED
