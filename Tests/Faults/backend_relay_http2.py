"""The relay before a backend over HTTP/2: reads the frames that pass, and notes what was sent, and what refused."""

import h2.frame_buffer
import hpack
import hyperframe.frame

import backend_relay
import batches
import relay

REFUSED_STREAM = 7
# The default of SETTINGS_MAX_FRAME_SIZE (RFC 9113, section 6.5.2), which neither side has changed.
FRAME_BYTES = 16384


class Pair(relay.Pair):
    def __init__(self, relay_):
        super().__init__(relay_)
        self.there = self.frames(is_server=True)
        self.back = self.frames(is_server=False)
        self.decoder = hpack.Decoder()
        self.streams = {}  # The requests of each stream, several of a batch, until it is refused.
        self.parts = {}  # The fields and the body of each batch, until all of it has come.
        self.last = float("inf")  # The greatest stream that the backend has stated to accept.

    @staticmethod
    def frames(is_server):
        frames = h2.frame_buffer.FrameBuffer(server=is_server)
        frames.max_frame_size = FRAME_BYTES
        return frames

    def upwards(self, data):
        self.there.add_data(data)
        for frame in self.there:
            if isinstance(frame, hyperframe.frame.HeadersFrame):
                fields = dict(self.decoder.decode(frame.data))
                if fields[":path"] == batches.PATH:
                    self.parts[frame.stream_id] = fields, bytearray()
                elif fields[":method"] == "POST":
                    self.sent(frame.stream_id, fields)
            elif isinstance(frame, hyperframe.frame.DataFrame) and frame.stream_id in self.parts:
                self.received_part(frame)
        super().upwards(data)

    def received_part(self, frame):
        fields, body = self.parts[frame.stream_id]
        body += frame.data
        if "END_STREAM" in frame.flags:
            del self.parts[frame.stream_id]
            self.sent(frame.stream_id, fields, bytes(body))

    def sent(self, stream, fields, body=b""):
        self.streams[stream] = backend_relay.requests(fields[":path"], fields, body, self.relay.node)
        for request in self.streams[stream]:
            self.relay.journal.add("sent", **request)
        if stream > self.last:
            self.refused(stream)

    def downwards(self, data):
        self.back.add_data(data)
        for frame in self.back:
            if isinstance(frame, hyperframe.frame.RstStreamFrame) and frame.error_code == REFUSED_STREAM:
                self.refused(frame.stream_id)
            elif isinstance(frame, hyperframe.frame.GoAwayFrame):
                self.last = min(self.last, frame.last_stream_id)
                for stream in [each for each in self.streams if each > self.last]:
                    self.refused(stream)
        super().downwards(data)
        if self.late:
            self.relay.log("holds back")

    def refused(self, stream):
        for request in self.streams.pop(stream, []):
            self.relay.journal.add("refused", **request)


class BackendRelay(backend_relay.BackendRelay):
    pair_type = Pair
