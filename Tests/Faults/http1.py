"""As much of HTTP/1.1 as the two ends need, on bytes."""

import re

HEAD_END = b"\r\n\r\n"


class Message:
    """A message as it comes in, piece by piece. `is_whole` once its framing says so."""

    def __init__(self, is_response=False):
        self.is_response = is_response
        self.buffer = bytearray()
        self.start = None
        self.fields = {}
        self.body = b""
        self.is_whole = False
        self.is_broken = False

    def feed(self, data):
        """Takes what came; returns what comes after the message's end."""
        self.buffer += data
        if self.start is None:
            end = self.buffer.find(HEAD_END)
            if end < 0:
                return b""
            self.read_head(bytes(self.buffer[:end]))
            del self.buffer[: end + 4]
        if "transfer-encoding" in self.fields:
            return self.read_chunks()
        length = int(self.fields.get("content-length", "0"))
        if self.is_response and self.status in (204, 304):
            length = 0
        if len(self.buffer) < length:
            return b""
        self.body = bytes(self.buffer[:length])
        self.is_whole = True
        return bytes(self.buffer[length:])

    def read_head(self, head):
        lines = head.decode("latin-1").split("\r\n")
        self.start = lines[0]
        for line in lines[1:]:
            name, _, value = line.partition(":")
            self.fields[name.lower()] = value.strip()

    def read_chunks(self):
        body = bytearray()
        at = 0
        while True:
            end = self.buffer.find(b"\r\n", at)
            if end < 0:
                return b""
            size = int(self.buffer[at:end].split(b";")[0], 16)
            if len(self.buffer) < end + 2 + size + 2:
                return b""
            body += self.buffer[end + 2 : end + 2 + size]
            at = end + 2 + size + 2
            if size == 0:
                break
        self.body = bytes(body)
        self.is_whole = True
        return bytes(self.buffer[at:])

    @property
    def status(self):
        return int(self.start.split(" ", 2)[1])


def request(path, fields, body):
    lines = [f"POST {path} HTTP/1.1", "Host: shop.example", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    return "\r\n".join(lines).encode() + HEAD_END + body


def response(status, fields, body, is_chunked=False):
    framing = "Transfer-Encoding: chunked" if is_chunked else f"Content-Length: {len(body)}"
    lines = [f"HTTP/1.1 {status} Scripted", framing, "Content-Type: application/json"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    if is_chunked:
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    return "\r\n".join(lines).encode() + HEAD_END + body


# A field of a request's head, wherever it stands.
def field(head, name):
    found = re.search(rb"\r\n" + name + rb": *([^\r]*)\r\n", head, re.IGNORECASE)
    return found.group(1).decode("latin-1") if found else None
