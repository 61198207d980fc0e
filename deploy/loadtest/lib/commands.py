"""Semel's own commands, replayed at a Redis without Semel, so many at once that Redis is never idle."""

import collections
import re
import secrets
import time

from lib.resp import Redis, RedisError, written

# Commands in one write: the cost of the sockets is shared by so many.
DEPTH = 64
# The places in a command: EVALSHA DIGEST 1 KEY OWNER DEADLINE… of a claim, EVALSHA DIGEST 1 KEY… of a completion.
KEY, DEADLINE = 3, 5
ESCAPES = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"a": b"\a", b"b": b"\b"}


def words(line):
    """The words of a command in MONITOR's form, in which they are quoted."""
    def plain(found):
        return bytes.fromhex(found[1][1:].decode()) if found[1][:1] == b"x" else ESCAPES.get(found[1], found[1])
    return [re.sub(rb"\\(x[0-9a-f]{2}|.)", plain, word, flags=re.S) for word in re.findall(rb'"((?:[^"\\]|\\.)*)"', line, re.S)]


class Watch:
    """The commands on records that Redis is sent meanwhile."""

    def __init__(self, port):
        self.monitor, self.redis = Redis(port), Redis(port)
        self.monitor.command("MONITOR")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Ends the watch, for which Redis writes each command twice."""
        self.monitor.close()
        self.redis.close()

    def commands(self):
        """The claim, the completion and the replay of a key that was used twice since the last call."""
        mark = secrets.token_hex(8)
        self.redis.command("ECHO", mark)
        found = collections.defaultdict(list)  # by key: a load before may still have commands under way
        while mark.encode() not in (line := self.monitor.file.readline()):
            command = words(line)
            # A script's own commands are marked, and are no scripts.
            if command and command[0].upper() == b"EVALSHA" and command[KEY].endswith(b"}"):
                found[command[KEY]].append(command)
        return next(three for three in found.values() if len(three) == 3 and three[0][1] == three[2][1] != three[1][1])


class Saturation:
    """The CPU of Redis for a command, in microseconds, when it has nothing else to do and no pause."""

    def __init__(self, port, count, rounds):
        self.redis, self.count, self.rounds = Redis(port), count, rounds

    def keys(self, command):
        """New keys in the form of the command's."""
        head, _, tail = command[KEY].rpartition(b"{")
        return [b"%b{%b}" % (head, secrets.token_urlsafe(32).encode()) for _ in range(self.count)]

    def measure(self, command, keys, expected):
        """The CPU of all, and what of it is inside the command, for each."""
        batches = [
            b"".join(written(*command[:KEY], key, *command[KEY + 1:]) for key in keys[at:at + DEPTH])
            for at in range(0, len(keys), DEPTH)]
        self.redis.command("CONFIG", "RESETSTAT")
        before, left = self.redis.cpu(), len(keys)
        for batch in batches:
            self.redis.send(batch)
            for _ in range(min(DEPTH, left)):
                reply = self.redis.reply()
                if not expected(reply):
                    raise RedisError(f"an unexpected reply: {reply!r}")
            left -= DEPTH
        spent = self.redis.cpu() - before
        calls, inside = self.redis.commands()["evalsha"]
        return spent / len(keys) * 1e6, inside / calls

    def run(self, claim, complete, replay):
        """The lowest of some rounds, since noise only adds: of a claim, its completion, and a replay."""
        def on_time(command):
            return command[:DEADLINE] + [b"%d" % ((time.time() + 3600) * 1000)] + command[DEADLINE + 1:]

        claim, replay, found = on_time(claim), on_time(replay), []
        for _ in range(self.rounds):
            keys = self.keys(claim)
            found.append([
                self.measure(claim, keys, lambda reply: isinstance(reply, int)),
                self.measure(complete, keys, lambda reply: isinstance(reply, int)),
                self.measure(replay, keys, lambda reply: reply[1] == b"standing")])
            for at in range(0, len(keys), 1000):
                self.redis.command("DEL", *keys[at:at + 1000])
        return [tuple(map(min, zip(*rounds))) for rounds in zip(*found)]
