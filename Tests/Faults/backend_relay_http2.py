"""The relay before a backend over HTTP/2: reads the frames that pass, and writes down what was sent, and what refused."""

import h2.frame_buffer
import hpack
import hyperframe.frame

import backend
import backend_relay
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
        self.streams = {}  # The request of each stream, until it is refused.
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
                if fields[":method"] == "POST":
                    self.sent(frame.stream_id, fields)
        super().upwards(data)

    def sent(self, stream, fields):
        request = {
            "id": fields["idempotency-request-id"],
            "record": backend.record(fields["authorization"], fields[":path"], fields["idempotency-key"]),
            "attempt": int(fields["idempotency-attempt"]),
            "node": self.relay.node,
        }
        self.streams[stream] = request
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
        request = self.streams.pop(stream, None)
        if request:
            self.relay.journal.add("refused", **request)


class BackendRelay(backend_relay.BackendRelay):
    pair_type = Pair
