"""The relay before one server of several, which clients, its replicas and Sentinels all reach through it.

The server announces the relay's port as its own, so that nobody knows another way to it.
"""

import redis_relay
import relay

# A replica's and a Sentinel's first words on a connection.
REPLICATION = (b"REPLCONF", b"PSYNC")
SENTINEL = (b"sentinel-",)


class Pair(redis_relay.PlantingPair):
    """A connection to the server. Replication obeys `is_cut_off` alone, and a Sentinel's connections are left alone."""

    def __init__(self, owner):
        super().__init__(owner)
        self.kind = None
        self.beginning = b""

    def upwards(self, data):
        if self.kind is None:
            self.recognise(data)
        if self.kind in ("replica", "sentinel"):
            return self.send(self.far, data)
        if self.relay.bug:
            return super().upwards(data)
        return relay.Pair.upwards(self, data)

    def recognise(self, data):
        # A replica begins with PING, a Sentinel with its name.
        self.beginning += data[:256]
        if any(word in self.beginning for word in REPLICATION):
            self.kind = "replica"
        elif any(word in self.beginning for word in SENTINEL):
            self.kind = "sentinel"
        elif len(self.beginning) > 64:
            self.kind = "client"

    def downwards(self, data):
        if self.kind == "replica":
            if not self.relay.is_cut_off:
                self.send(self.near, data)
        elif self.kind == "sentinel":
            self.send(self.near, data)
        else:
            super().downwards(data)


class StoreRelay(redis_relay.RedisRelay):
    """`is_cut_off` swallows what the server sends to its replicas; the connections stand."""

    def __init__(self, name, target, dice, journal, bug=None):
        super().__init__(name, target, dice, journal, bug)
        self.pair_type = Pair
        self.is_cut_off = False

    def join(self):
        """Ends a cut. Nothing may follow on a connection that has lost bytes."""
        self.is_cut_off = False
        for pair in list(self.pairs):
            if pair.kind == "replica":
                pair.abort()
