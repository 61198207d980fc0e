"""Semel's own commands, replayed at a Redis without Semel, so many at once that Redis is never idle."""

import collections
import re
import secrets

from lib.resp import Redis, RedisError, written

# Commands in one write: the cost of the sockets is shared by so many.
DEPTH = 64
# The place of the key in a command: SET KEY RECORD NX GET PX TTL of a claim, EVALSHA DIGEST 1 KEY… of a completion.
KEY = {b"SET": 1, b"EVALSHA": 3}
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
        """The claim, the completion and the replay of a key that was used twice since the last call, as under load; None
        if there is none."""
        mark = secrets.token_hex(8)
        self.redis.command("ECHO", mark)
        found = collections.defaultdict(list)  # by key: a load before may still have commands under way
        while mark.encode() not in (line := self.monitor.file.readline()):
            command = words(line)
            # A script's own commands are marked.
            if command and command[0] in KEY and b" lua]" not in line and command[KEY[command[0]]].endswith(b"}"):
                found[command[KEY[command[0]]]].append(command)
        return next((
            three for three in found.values()
            if [command[0] for command in three] == [b"SET", b"EVALSHA", b"SET"] and self.is_completion(three[1])), None)

    @staticmethod
    def is_completion(command):
        """Whether a script is a completion under load: its first argument begins a record, which a claim's does not, and
        its last but one is the time."""
        return command[4].startswith(b"1 ") and command[-2].isdigit()


class Saturation:
    """The CPU of Redis for a command, in microseconds, when it has nothing else to do and no pause."""

    def __init__(self, port, count, rounds):
        self.redis, self.count, self.rounds = Redis(port), count, rounds

    def keys(self, command):
        """New keys in the form of the command's."""
        head, _, tail = command[KEY[command[0]]].rpartition(b"{")
        return [b"%b{%b}" % (head, secrets.token_urlsafe(32).encode()) for _ in range(self.count)]

    def measure(self, command, keys, expected):
        """The CPU of all, and what of it is inside the command, for each."""
        place = KEY[command[0]]
        batches = [
            b"".join(written(*command[:place], key, *command[place + 1:]) for key in keys[at:at + DEPTH])
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
        calls, inside = self.redis.commands()[command[0].decode().lower()]
        return spent / len(keys) * 1e6, inside / calls

    def run(self, claim, complete, replay):
        """The lowest of some rounds, since noise only adds: of a claim, its completion, and a replay."""
        found = []
        for _ in range(self.rounds):
            keys = self.keys(claim)
            found.append([
                self.measure(claim, keys, lambda reply: reply is None),
                self.measure(complete, keys, lambda reply: isinstance(reply, int)),
                self.measure(replay, keys, lambda reply: reply[35:].startswith(b"completed "))])
            for at in range(0, len(keys), 1000):
                self.redis.command("DEL", *keys[at:at + 1000])
        return [tuple(map(min, zip(*rounds))) for rounds in zip(*found)]
