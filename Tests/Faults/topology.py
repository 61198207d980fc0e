"""A store of several servers: a cluster, or a master and its replicas with Sentinels."""

import asyncio
import os
import random
import time

import settings
import shard
from resp import Refused
from servers import Sentinel, Server
from store_relay import StoreRelay

SLOTS = 16384


async def until(what, is_so, within=90):
    limit = time.monotonic() + within
    while not await is_so():
        if time.monotonic() > limit:
            raise RuntimeError(f"not within {within} s: {what}")
        await asyncio.sleep(0.05)


async def repeatedly(server, *words):
    """Sends a command until it is obeyed: a replica that is late has its master refuse writes."""
    for left in reversed(range(20)):
        try:
            return await server.client.call(*words, limit=5)
        except (OSError, Refused):
            if not left:
                raise
            await asyncio.sleep(0.1)
    return None


class Topology:
    """Servers in shards, each behind a relay. `replicas` is what Semel demands of them; 0 may lose the newest writes."""

    count = 1
    is_cluster = False

    def __init__(self, directory, journal, seed, replicas, clock, bug=None):
        self.journal = journal
        self.clock = clock
        self.replicas = replicas
        self.directory = os.path.join(directory, "store")
        os.makedirs(self.directory)
        self.seed = seed
        self.bug = bug
        # One fault of the servers at a time: the guarantee is about one at a time.
        self.lock = asyncio.Lock()
        self.is_over = False
        self.shards, self.relays, self.sentinels = [], [], []

    @property
    def servers(self):
        return [server for shard in self.shards for server in shard.servers]

    @property
    def processes(self):
        return [*self.servers, *self.sentinels]

    async def start(self):
        for number in range(self.count):
            first, last = number * SLOTS // self.count, (number + 1) * SLOTS // self.count - 1
            servers = [await self.server(f"redis{number}-{place}") for place in range(1 + max(1, self.replicas))]
            self.shards.append(shard.Shard(servers, (first, last), self.journal))
        await asyncio.gather(*(server.start() for server in self.servers))
        await self.join()
        self.journal.add("store", topology=self.name, replicas=self.replicas)
        for each in self.shards:
            each.watch()
        await self.settle()

    async def server(self, name):
        dice = random.Random(f"{self.seed} {name}")
        relay = StoreRelay(f"redis relay {name}", None, dice, self.journal, self.bug)
        await relay.start()
        server = Server(name, self.directory, relay.port, self.is_cluster, self.replicas, self.clock)
        relay.target = ("127.0.0.1", server.port)
        server.relay = relay
        self.relays.append(relay)
        return server

    async def settle(self):
        """Waits until every master has its replicas."""
        for each in self.shards:
            await until("the replicas follow", each.is_settled)

    async def stop(self):
        for each in self.shards:
            each.stop()
        for process in self.processes:
            process.thaw()
            await process.kill()

    def text(self):
        """The store's settings of a node."""
        ports = [sentinel.port for sentinel in self.sentinels] or [server.relay_port for server in self.servers]
        nodes = ", ".join(f"'127.0.0.1:{port}'" for port in ports)
        text = f"kind: redis, topology: {self.name}, nodes: [{nodes}]"
        text += f", timeout: {int(settings.TOPOLOGY_TIMEOUT * 1000)}ms"
        if self.replicas:
            text += f", replicas: {self.replicas}, failover_grace: {int(settings.FAILOVER_GRACE * 1000)}ms"
        return text + (f", master_name: {settings.MASTER_NAME}" if self.sentinels else "")


class Cluster(Topology):
    name = "cluster"
    count = 3
    is_cluster = True

    async def join(self):
        for number, each in enumerate(self.shards):
            client = each.servers[0].client
            await client.call("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            await client.call("CLUSTER", "ADDSLOTSRANGE", *each.slots)
        first = self.servers[0]
        for server in self.servers[1:]:
            await first.client.call("CLUSTER", "MEET", "127.0.0.1", server.relay_port, server.bus_port)
        for server in self.servers:
            await until("the nodes know each other", lambda: self.says(server, f"known_nodes:{len(self.servers)}"))
        for each in self.shards:
            each.names = [(await server.client.call("CLUSTER", "MYID")).decode() for server in each.servers]
            for replica in each.servers[1:]:
                await until("the master is known", lambda: self.replicates(replica, each.names[0]))
        for server in self.servers:
            await until("the cluster is up", lambda: self.says(server, "state:ok"))

    @staticmethod
    async def says(server, words):
        return words in (await server.client.call("CLUSTER", "INFO")).decode()

    @staticmethod
    async def replicates(replica, name):
        try:
            return await replica.client.call("CLUSTER", "REPLICATE", name) == "OK"
        except (OSError, Refused):  # It does not know the master yet.
            return False

    async def migrate(self, slot, source, target):
        """Moves a slot key by key, with pauses in which its records are used at both."""
        names = dict(zip(source.servers + target.servers, source.names + target.names))
        giver, taker = source.master, target.master
        await taker.client.call("CLUSTER", "SETSLOT", slot, "IMPORTING", names[giver])
        await giver.client.call("CLUSTER", "SETSLOT", slot, "MIGRATING", names[taker])
        while True:
            await asyncio.sleep(0.05)
            keys = await giver.client.call("CLUSTER", "GETKEYSINSLOT", slot, 2)
            if not keys:
                break
            for key in keys:
                await repeatedly(giver, "MIGRATE", "127.0.0.1", taker.port, key, 0, 3000)
        for server in (taker, giver):
            await repeatedly(server, "CLUSTER", "SETSLOT", slot, "NODE", names[taker])

    async def fail_over(self, rig, each):
        """Has a replica take over: with its master's help, without it, or without anybody's."""
        replica = rig.dice.choice([server for server in each.servers if server is not each.master])
        await replica.client.call("CLUSTER", "FAILOVER", *rig.dice.choice([[], ["FORCE"], ["TAKEOVER"]]))
        return replica


class SentinelGroup(Topology):
    name = "sentinel"

    async def join(self):
        master, *replicas = self.servers
        for replica in replicas:
            await replica.client.call("REPLICAOF", "127.0.0.1", master.relay_port)
        # They read a master's replicas once in ten seconds, and first of all at their start.
        await until("the replicas follow", lambda: shard.has_replicas(master, len(replicas)))
        self.sentinels = [
            Sentinel(f"sentinel{number}", self.directory, master.relay_port, quorum=2) for number in range(3)
        ]
        await asyncio.gather(*(sentinel.start() for sentinel in self.sentinels))
        for sentinel in self.sentinels:
            await until("the Sentinels know each other", lambda: self.knows(sentinel, len(replicas)))

    @staticmethod
    async def knows(sentinel, replicas):
        reply = await sentinel.client.call("SENTINEL", "MASTER", settings.MASTER_NAME)
        members = dict(zip(reply[::2], reply[1::2]))
        return int(members[b"num-slaves"]) >= replicas and int(members[b"num-other-sentinels"]) == 2

    async def fail_over(self, rig, _each):
        await rig.dice.choice(self.sentinels).client.call("SENTINEL", "FAILOVER", settings.MASTER_NAME)


KINDS = {kind.name: kind for kind in (Cluster, SentinelGroup)}
