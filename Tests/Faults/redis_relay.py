"""The relay between a node and Redis. With a planted bug it rewrites the scripts that the node loads."""

import relay

# Planted bugs: what of which script is written how instead. Each takes one rule out of the protocol.
PLANTED = {
    "no-owner-check": [
        (
            "'completed ' .. ARGV[2]",
            "local own = not r or string.find(r, ARGV[1], 1, true) == 1\nif own then\n"
            "  local state = r and string.byte(r, 36) or 105\n  if state == 99 then",
            "local own = true\nif own then\n  local state = 105\n  if state == 99 then",
        )
    ],
    "lease-as-ttl": [
        ("now >= tonumber(ARGV[2])", "'PX', ARGV[5])", "'PX', string.match(ARGV[3], '^%d+'))"),
        ("'in_flight ' .. ARGV[2]", "'PX', ARGV[4])", "'PX', string.match(ARGV[3], '^%d+'))"),
    ],
    "release-on-error": [("'unknown ' .. ARGV[2]", "'unknown ' .. ARGV[2]", "'released ' .. ARGV[2]")],
    "fence-deleted": [("'forgotten ' .. first", "ARGV[2] == 'deleted' and fence > 0", "false")],
    # Replicas that are not waited for.
    "no-wait": [],
    "no-deadline": [
        ("now >= tonumber(ARGV[2])", "if now >= tonumber(ARGV[2]) then return {now, 'late'} end", ""),
        ("now >= tonumber(ARGV[2])", "if owner == ARGV[1] then return {now, 'late'} end", ""),
    ],
}


class NothingPlanted(Exception):
    """The scripts are no longer those that the planted bug was made for."""


def plant(bug, script):
    """The script with the bug, where it is one that the bug is in."""
    for mark, old, new in PLANTED[bug]:
        if mark not in script:
            continue
        if old not in script:
            raise NothingPlanted(f"{bug}: {old!r} is not in a script that it should be in:\n{script}")
        script = script.replace(old, new)
    return script


def commands(data):
    """Parts RESP arrays of bulk strings: the whole ones, and the bytes of one that is not whole yet."""
    whole, at = [], 0
    while True:
        start, parts = at, []
        end = data.find(b"\r\n", at)
        if end < 0:
            return whole, data[start:]
        at = end + 2
        for _ in range(int(data[start + 1 : end])):
            end = data.find(b"\r\n", at)
            if end < 0:
                return whole, data[start:]
            size = int(data[at + 1 : end])
            at = end + 2 + size + 2
            if len(data) < at:
                return whole, data[start:]
            parts.append(bytes(data[end + 2 : end + 2 + size]))
        whole.append(parts)


def written(parts):
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)


class PlantingPair(relay.Pair):
    def __init__(self, owner):
        super().__init__(owner)
        self.unread = b""

    def upwards(self, data):
        whole, self.unread = commands(self.unread + data)
        for parts in whole:
            name = parts[0].upper()
            if name == b"WAIT" and self.relay.bug == "no-wait":
                parts[:] = [b"COMMAND", b"COUNT"]  # Its reply is more than any number of replicas.
            if name == b"SCRIPT" and len(parts) == 3:
                parts[2] = plant(self.relay.bug, parts[2].decode()).encode()
            elif name == b"EVAL":
                parts[1] = plant(self.relay.bug, parts[1].decode()).encode()
        if whole:
            super().upwards(b"".join(written(parts) for parts in whole))


class RedisRelay(relay.Relay):
    def __init__(self, name, target, dice, journal, bug=None):
        super().__init__(name, target, dice, journal)
        self.bug = bug if bug in PLANTED else None
        if self.bug:
            self.pair_type = PlantingPair
