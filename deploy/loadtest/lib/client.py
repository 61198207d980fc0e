"""A small HTTP/1.1 client for many connections."""

import asyncio


class Lost(Exception):
    """There is no complete response: the connection could not be made, or ended."""


class Response:
    __slots__ = ("status", "fields", "body")

    def __init__(self, status, fields, body):
        self.status, self.fields, self.body = status, fields, body


class Connection:
    """One kept connection; made when it is first needed, and again after a loss."""

    def __init__(self, host, port, timeout=60):
        self.host, self.port, self.timeout = host, port, timeout
        self.reader = self.writer = None

    async def send(self, method, path, fields=(), body=b""):
        try:
            return await asyncio.wait_for(self._send(method, path, fields, body), self.timeout)
        except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError, ValueError) as error:
            self.close()
            raise Lost(repr(error)) from None

    async def _send(self, method, path, fields, body):
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection(self.host, self.port)
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self.host}:{self.port}", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in fields]
        self.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = {}
        for line in head[1:-2]:
            name, _, value = line.partition(":")
            fields[name.lower()] = value.strip()
        body = await self._body(fields)
        if fields.get("connection", "").lower() == "close":
            self.close()
        return Response(int(head[0].split(" ")[1]), fields, body)

    async def _body(self, fields):
        if "chunked" not in fields.get("transfer-encoding", ""):
            return await self.reader.readexactly(int(fields.get("content-length", 0)))
        body = b""
        while size := int((await self.reader.readline()).split(b";")[0], 16):
            body += await self.reader.readexactly(size)
            await self.reader.readline()
        while (await self.reader.readline()).strip():
            pass
        return body

    def close(self):
        if self.writer is not None:
            self.writer.close()
        self.reader = self.writer = None
