"""A TCP relay that breaks connections on command."""

import asyncio
import collections
import dataclasses

import settings


@dataclasses.dataclass
class Trouble:
    """The shares, of a hundred relayed pieces, that meet each fate."""

    cut: float = 0  # The first half arrives, then both sides are cut.
    lose: float = 0  # It arrives, and both sides are cut when the reply comes back.
    ghost: float = 0  # Its sender is cut off at once, and it arrives later all the same.
    delay: float = 0  # The reply is late.
    longest: float = 0.6  # The longest delay, in seconds.


CALM = Trouble()


class Side(asyncio.Protocol):
    """One of the two connections of a pair."""

    def __init__(self, pair):
        self.pair = pair
        self.transport = None

    def connection_made(self, transport):
        self.transport = transport
        self.pair.opened(self)

    def data_received(self, data):
        self.pair.received(self, data)

    def connection_lost(self, error):
        self.pair.lost(self, error)

    def pause_writing(self):
        self.pair.other(self).pause()

    def resume_writing(self):
        self.pair.other(self).resume()

    def pause(self):
        if self.transport and not self.transport.is_closing():
            self.transport.pause_reading()

    def resume(self):
        if self.transport and not self.transport.is_closing():
            self.transport.resume_reading()


class Pair:
    """A client's connection and the one to the server that belongs to it."""

    def __init__(self, relay):
        self.relay = relay
        self.near = Side(self)
        self.far = Side(self)
        self.waiting = []  # The bytes that came before the far side was connected.
        self.swallows = False
        self.is_ghost = False
        self.late = collections.deque()  # The delayed bytes for the near side, with their times.

    def other(self, side):
        return self.far if side is self.near else self.near

    def opened(self, side):
        if side is self.near:
            self.relay.pairs.add(self)
            asyncio.ensure_future(self.connect())

    async def connect(self):
        host, port = self.relay.target
        try:
            await asyncio.get_running_loop().create_connection(lambda: self.far, host, port)
        except OSError:
            return self.abort()
        if self.near.transport.is_closing() and not self.is_ghost:
            return self.abort()
        for data in self.waiting:
            self.far.transport.write(data)

    def received(self, side, data):
        if side is self.near:
            self.upwards(data)
        else:
            self.downwards(data)

    def upwards(self, data):
        trouble, dice = self.relay.trouble, self.relay.dice
        fate = dice.random() * 100
        if fate < trouble.cut:
            self.relay.log("cut on the way there")
            self.send(self.far, data[: len(data) // 2])
            return self.abort()
        fate -= trouble.cut
        if fate < trouble.lose:
            self.swallows = True
        fate -= trouble.lose
        if 0 <= fate < trouble.ghost:
            self.relay.log("ghost")
            self.is_ghost = True
            self.near.transport.abort()
            # What comes after `settle`, no settings can make up for.
            longest = min(trouble.longest, settings.SETTLE - 0.1)
            asyncio.get_running_loop().call_later(dice.uniform(0.01, longest), self.haunt, data)
            return None
        return self.send(self.far, data)

    def haunt(self, data):
        self.send(self.far, data)
        asyncio.get_running_loop().call_later(0.5, self.abort)

    def downwards(self, data):
        trouble, dice = self.relay.trouble, self.relay.dice
        if self.is_ghost:
            return None
        if self.swallows:
            self.relay.log("reply lost")
            return self.abort()
        fate = dice.random() * 100
        if fate < trouble.cut:
            self.relay.log("cut on the way back")
            if not self.late:
                self.send(self.near, data[: len(data) // 2])
            return self.abort()
        loop = asyncio.get_running_loop()
        if fate - trouble.cut < trouble.delay:
            self.late.append((loop.time() + dice.uniform(0, trouble.longest), data))
            loop.call_at(self.late[-1][0], self.deliver_late)
        elif self.late:
            # In order, as TCP is: what comes after a late piece is as late.
            self.late.append((self.late[-1][0], data))
        else:
            self.send(self.near, data)
        return None

    def deliver_late(self):
        now = asyncio.get_running_loop().time()
        while self.late and self.late[0][0] <= now:
            self.send(self.near, self.late.popleft()[1])

    def send(self, side, data):
        if side is self.far and side.transport is None:
            self.waiting.append(data)
        elif not side.transport.is_closing():
            side.transport.write(data)

    def lost(self, side, _error):
        if self.is_ghost and side is self.near:
            return
        self.relay.pairs.discard(self)
        transport = self.other(side).transport
        if transport and not transport.is_closing():
            transport.close()

    def abort(self):
        self.relay.pairs.discard(self)
        for side in (self.near, self.far):
            if side.transport and not side.transport.is_closing():
                side.transport.abort()


class Relay:
    """Listens on a port of its own for one target. `trouble` may be changed at any time."""

    pair_type = Pair

    def __init__(self, name, target, dice, journal):
        self.name = name
        self.target = target
        self.dice = dice
        self.journal = journal
        self.trouble = CALM
        self.pairs = set()
        self.server = None
        self.port = 0

    def log(self, what):
        self.journal.add("fault", name=f"{self.name}: {what}")

    async def start(self):
        loop = asyncio.get_running_loop()
        self.server = await loop.create_server(
            lambda: self.pair_type(self).near, "127.0.0.1", self.port, backlog=1024
        )
        self.port = self.server.sockets[0].getsockname()[1]

    async def refuse(self, span):
        """Refuses new connections, and cuts those that stand, for so many seconds."""
        self.log("refuses")
        self.server.close()
        self.cut_all()
        await asyncio.sleep(span)
        await self.start()

    def cut_all(self):
        for pair in list(self.pairs):
            pair.abort()

    def stop(self):
        self.server.close()
        self.cut_all()
