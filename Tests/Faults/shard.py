"""A master and its replicas, and the times at which the replicas lack something."""

import asyncio
import time

from resp import Refused

INTERVAL = 0.1


async def has_replicas(server, count):
    info = await server.client.info("replication")
    return sum("state=online" in text for word, text in info.items() if word.startswith("slave")) == count


class Shard:
    """Servers of which one is the master. `slots` are those of the cluster that are its own at first.

    The journal gets each gap: from the last moment at which the replicas had everything to the next one. Where another
    server became the master within it, the writes of the gap may be lost.
    """

    def __init__(self, servers, slots, journal):
        self.servers = servers
        self.slots = slots
        self.journal = journal
        self.names = []
        self.master = servers[0]
        self.whole_at = None
        self.is_whole = False
        self.was_promoted = False
        self.turns = 0
        self.task = None

    @property
    def replicas(self):
        return [server for server in self.servers if server is not self.master]

    def watch(self):
        self.task = asyncio.ensure_future(self.follow())

    def stop(self):
        if self.task:
            self.task.cancel()

    async def is_settled(self):
        """Whether the replicas have everything, by findings that begin after this call."""
        turns = self.turns
        while self.turns < turns + 2:
            if self.task.done():
                self.task.result()
            await asyncio.sleep(INTERVAL / 4)
        return self.is_whole

    async def follow(self):
        while True:
            await self.look()
            self.turns += 1
            await asyncio.sleep(INTERVAL)

    async def look(self):
        begun = time.monotonic()
        infos = await asyncio.gather(*(self.info(server) for server in self.servers))
        masters = [server for server, info in zip(self.servers, infos) if info and info["role"] == "master"]
        if any(server is not self.master for server in masters):
            self.was_promoted = True
        self.is_whole = len(masters) == 1 and await self.is_followed(masters[0], infos)
        if not self.is_whole:
            return
        if self.whole_at and (self.was_promoted or begun - self.whole_at > 0.5):
            self.journal.add("gap", since=self.whole_at, slots=self.slots, promoted=self.was_promoted)
        self.master, self.was_promoted, self.whole_at = masters[0], False, begun

    async def is_followed(self, master, infos):
        """Whether each replica has what the master had when it was read."""
        wanted = int(infos[self.servers.index(master)]["master_repl_offset"])
        history = infos[self.servers.index(master)]["master_replid"]
        for server in (server for server in self.servers if server is not master):
            info = await self.info(server)
            if not info or info.get("master_link_status") != "up" or info["master_replid"] != history:
                return False
            if int(info["slave_repl_offset"]) < wanted:
                return False
        # It knows them, too: else a wait for them would be in vain.
        online = [text for word, text in infos[self.servers.index(master)].items() if word.startswith("slave")]
        return sum("state=online" in text for text in online) == len(self.servers) - 1

    @staticmethod
    async def info(server):
        try:
            return await server.watched.info("replication", limit=0.3)
        except (OSError, Refused):
            return None
