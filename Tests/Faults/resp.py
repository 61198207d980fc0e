"""A client of Redis' protocol, for the harness' own commands."""

import asyncio


class Refused(Exception):
    """Redis replied with an error."""


class Client:
    """One connection to a server, made when it is needed. Each command has a time limit, after which it is cut."""

    def __init__(self, port):
        self.port = port
        self.streams = None
        self.lock = asyncio.Lock()

    async def call(self, *words, limit=1.0):
        """Returns the reply. Raises OSError without one, and Refused for an error."""
        async with self.lock:
            try:
                return await asyncio.wait_for(self.exchange(words), limit)
            except (OSError, asyncio.TimeoutError, asyncio.IncompleteReadError) as error:
                self.close()
                raise OSError(f"no reply to {words[0]}") from error
            except asyncio.CancelledError:
                self.close()
                raise

    async def exchange(self, words):
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self.streams
        parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        writer.write(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts))
        reply = await self.read(reader)
        if isinstance(reply, Refused):
            raise reply
        return reply

    async def read(self, reader):
        line = await reader.readexactly(1)
        line += await reader.readuntil(b"\r\n")
        kind, text = line[:1], line[1:-2]
        match kind:
            case b"+":
                return text.decode()
            case b"-":
                return Refused(text.decode())
            case b":":
                return int(text)
            case b"$":
                size = int(text)
                return None if size < 0 else (await reader.readexactly(size + 2))[:-2]
            case b"*":
                return [await self.read(reader) for _ in range(max(0, int(text)))]
        raise OSError(f"not Redis: {line!r}")

    async def info(self, section, limit=1.0):
        """The members of a part of INFO."""
        text = (await self.call("INFO", section, limit=limit)).decode()
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)

    def close(self):
        if self.streams:
            self.streams[1].close()
        self.streams = None
