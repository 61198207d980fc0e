"""All parts of one run: clients, relays, nodes, relays, store and backend, and the storm that breaks them."""

import asyncio
import glob
import os
import pathlib
import random
import subprocess

import backend
import backend_relay
import batches
import faults
import settings
import store_faults
import topology
from batch_clients import Batch, BatchClients
from clients import Clients, Gateway, Intent
from journal import Journal
from nodes import Node, Redis
from redis_relay import RedisRelay
from relay import Relay
from stepped_clock import SteppedClock

FAKETIME = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")


class Disk:
    """The embedded store's place: a small file system of its own, if this process may mount one."""

    def __init__(self, path):
        self.path = path
        os.makedirs(path)
        mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "semel-faults", path]
        self.is_real = subprocess.run(mount, check=False, capture_output=True).returncode == 0

    def fill(self):
        with open(os.path.join(self.path, "filler"), "wb", buffering=0) as file:
            try:
                while file.write(b"\0" * 65536):
                    pass
            except OSError:
                pass

    def free(self):
        if os.path.exists(os.path.join(self.path, "filler")):
            os.remove(os.path.join(self.path, "filler"))

    def close(self):
        if self.is_real:
            subprocess.run(["umount", "--lazy", self.path], check=False)


class Rig:
    """`nodes` nodes on Redis, or with `nodes` 0 one on its embedded store.

    `store` is the topology of Redis and the number of replicas that Semel demands; none is one server.
    """

    def __init__(
        self, binary, directory, seed, nodes, clocks_apart=False, bug=None, is_http2=False, store=None
    ):  # fmt: skip
        self.seed = seed
        self.dice = random.Random(f"{seed} faults")
        self.journal = Journal()
        self.bug = bug
        self.binary = os.path.abspath(binary)
        self.directory = directory
        self.count = max(1, nodes)
        self.clocks_apart = clocks_apart
        self.clock = SteppedClock(directory) if nodes else None
        self.topology = None
        if store:
            self.topology = topology.KINDS[store[0]](directory, self.journal, seed, store[1], self.clock, bug)
        self.redis = Redis(directory, self.clock) if nodes and not store else None
        self.disk = None if nodes else Disk(os.path.join(directory, "store"))
        self.is_http2 = is_http2
        self.is_sealed = False  # Whether the store seals responses.
        self.backend_type, self.backend_relay_type = parts(is_http2)
        self.backend = self.backend_type(seed, self.journal, settings.RESPONSE_TIMEOUT)
        self.client_relays, self.redis_relays, self.backend_relays, self.nodes = [], [], [], []
        self.items, self.batch_count = set(), 0
        self.mending = set()
        self.watching, self.counting = None, None
        self.pace = 1  # The factor of the pauses between faults.

    def log(self, what, process):
        self.journal.add("fault", name=what, of=process.name)

    def track(self, work):
        task = asyncio.ensure_future(work)
        self.mending.add(task)
        task.add_done_callback(self.mending.discard)
        return task

    def secret_file(self):
        path = os.path.join(self.directory, "secret")
        with open(path, "w", encoding="utf-8") as file:
            file.write("the secret of the faults")
        return path

    def store_files(self):
        return glob.glob(os.path.join(self.disk.path, "semel.db*"))

    async def start(self):
        await self.backend.start()
        if self.redis:
            await self.redis.start()
            self.redis.lock = asyncio.Lock()
        if self.topology:
            await self.topology.start()
            self.redis_relays = self.topology.relays
        for number in range(self.count):
            await self.add_node(number)
        await asyncio.gather(*(node.start() for node in self.nodes))
        self.watching = asyncio.ensure_future(self.watch_itself())
        if self.topology:
            self.counting = asyncio.ensure_future(self.count_again_and_again())
        self.clients = Clients(
            [Gateway(relay.port) for relay in self.client_relays],
            self.journal,
            random.Random(f"{self.seed} clients"),
        )
        self.batch_clients = BatchClients(self.clients)

    async def add_node(self, number):
        def dice(what):
            return random.Random(f"{self.seed} {what} {number}")

        to_backend = self.backend_relay_type(
            f"backend relay {number}",
            ("127.0.0.1", self.backend.port),
            dice("backend"),
            self.journal,
            number,
            self.bug,
            settings.LEASE + settings.SETTLE + 0.5,
        )
        await to_backend.start()
        self.backend_relays.append(to_backend)
        if self.topology:
            store = self.topology.text()
        elif self.redis:
            target = ("127.0.0.1", self.redis.port)
            to_redis = RedisRelay(f"redis relay {number}", target, dice("redis"), self.journal, self.bug)
            await to_redis.start()
            self.redis_relays.append(to_redis)
            store = f"kind: redis, url: 'redis://127.0.0.1:{to_redis.port}/0', timeout: "
            store += f"{int(settings.STORE_TIMEOUT * 1000)}ms"
        else:
            store = f"kind: embedded, path: '{os.path.join(self.disk.path, 'semel.db')}'"
        if self.is_sealed:
            store += f", encryption: {{secret_files: ['{self.secret_file()}']}}"
        clock = None
        if self.clocks_apart:
            # Hours apart, and one of them fast.
            offset = ["-3h", "+0", "+5h x1.0003", "+40d"][number]
            clock = {"LD_PRELOAD": FAKETIME[0], "FAKETIME": offset, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        http2 = "prior_knowledge" if self.is_http2 else "off"
        node = Node(f"node{number}", self.binary, self.directory, store, to_backend.port, http2, clock)
        node.lock = asyncio.Lock()
        # It serves once its store does, whose servers may be about to fail over.
        node.start_timeout = 90 if self.topology else node.start_timeout
        self.nodes.append(node)
        from_clients = Relay(f"client relay {number}", ("127.0.0.1", node.port), dice("client"), self.journal)
        await from_clients.start()
        self.client_relays.append(from_clients)

    async def run(self, storm, intents, rate, seconds):
        """The storm, in which so many intents begin at so many a second, and the calm, in which each has to end."""
        # Ten kinds of faults at once, each at its own pace, would leave nothing that works.
        self.pace = 4 if len(storm) > 3 else 1
        troubles = [asyncio.ensure_future(fault(self)) for fault in storm]
        begun = await self.begin(intents, rate, seconds, troubles)
        await self.calm(troubles)
        return begun

    async def begin(self, count, rate, seconds, troubles):
        loop = asyncio.get_running_loop()
        start = loop.time()
        running, begun = set(), []
        while len(begun) < count and loop.time() < start + seconds:
            self.look(troubles)
            if len(running) > 400 or len(begun) > (loop.time() - start) * rate:
                await asyncio.sleep(0.005)
                continue
            intent = self.intent(len(begun))
            begun.append(intent)
            task = asyncio.ensure_future(self.clients_of(intent).pursue(intent))
            running.add(task)
            task.add_done_callback(running.discard)
        while running:
            self.look(troubles)
            await asyncio.wait(list(running), timeout=0.1)
        return begun

    def intent(self, number):
        dice = random.Random(f"{self.seed} intent {number}")
        # As for "hold", no unknown outcome of "repeat" is run again; other attempts are repeated for the client. One of
        # "ask" is run again only if the backend does not know it.
        rule = dice.choices(("hold", "repeat", "ask", "retry", batches.RULE), (35, 13, 13, 26, 13))[0]
        if rule == batches.RULE:
            return self.batch(number, dice)
        # Two callers use the same key now and then, for things of their own.
        key = f"k{number - 1 if number % 50 == 49 else number}"
        return self.noted(Intent(number, dice, f"caller{number % 7}", key, rule))

    def noted(self, intent):
        self.journal.add("intent", intent=intent.number, record=intent.record, rule=intent.rule)
        return intent

    def batch(self, number, dice):
        self.batch_count += 1
        batch = Batch(number, self.batch_count - 1, dice)
        for record in map(batch.record, batch.keys):
            if record not in self.items:
                self.items.add(record)
                self.journal.add("intent", intent=number, record=record, rule=batches.RULE)
        return batch

    def clients_of(self, intent):
        return self.batch_clients if intent.rule == batches.RULE else self.clients

    def look(self, troubles):
        """Nothing may end by itself."""
        for node in [*self.nodes, *(self.topology.processes if self.topology else [])]:
            if node.has_died:
                log = pathlib.Path(node.directory, f"{node.name}.log").read_text(errors="replace")
                # A log entry is JSON; what the runtime says of a crash is not.
                last_words = [line for line in log.splitlines() if not line.startswith("{")]
                raise RuntimeError("\n".join([f"{node.name} died by itself:", *last_words[:60]]))
        for trouble in troubles:
            if trouble.done():
                trouble.result()

    async def calm(self, troubles):
        if self.topology:
            self.topology.is_over = True
        for trouble in troubles:
            trouble.cancel()
        await asyncio.gather(*troubles, return_exceptions=True)
        while self.mending:
            await asyncio.gather(*self.mending)
        self.backend.shares = {}
        for relay in self.client_relays:
            relay.cut_all()
        if self.topology:
            await self.topology.settle()
        self.journal.add("calm")
        await asyncio.sleep(settings.LONGEST_FLIGHT)

    async def end(self, intents):
        """Ends every intent; the outcomes that clients got must stand. `within` is for a busy machine alone."""
        self.clients.phase = "calm"
        places = asyncio.Semaphore(48)

        async def one(intent):
            async with places:
                await self.clients_of(intent).end(intent, within=10)

        await asyncio.gather(*(one(intent) for intent in intents))
        if self.topology:
            await self.count_figures()

    async def watch_itself(self):
        """Notes when this process stood still, on a busy machine: what it saw after that may have been earlier."""
        loop = asyncio.get_running_loop()
        while True:
            begun = loop.time()
            await asyncio.sleep(0.05)
            if loop.time() - begun > 0.2:
                self.journal.add("stall", since=begun)

    async def count_again_and_again(self):
        while True:
            await self.count_figures()
            await asyncio.sleep(0.4)

    async def count_figures(self):
        """Notes what the nodes have counted, where it is not what it was."""
        for number, (node, figures) in enumerate(
            zip(self.nodes, await asyncio.gather(*(node.figures() for node in self.nodes)))
        ):
            if figures and figures != node.counted:
                node.counted = figures
                self.journal.add("counted", node=number, **figures)

    async def stop(self):
        # After a failure faults may still be at work, and would start a process again.
        mending = list(self.mending)
        for task in [self.watching, self.counting, *mending]:
            if task:
                task.cancel()
        await asyncio.gather(*mending, return_exceptions=True)
        for process in [*self.nodes, *([self.redis] if self.redis else [])]:
            process.thaw()
            await process.kill()
        if self.topology:
            await self.topology.stop()
        for relay in [*self.client_relays, *self.redis_relays, *self.backend_relays]:
            relay.stop()
        self.backend.stop()
        if self.disk:
            self.disk.close()


def parts(is_http2):
    """The backend, and the relay before it. Those of HTTP/2 need h2, which others can do without."""
    if not is_http2:
        return backend.Backend, backend_relay.BackendRelay
    import backend_http2
    import backend_relay_http2

    return backend_http2.Backend, backend_relay_http2.BackendRelay


def storm(name, nodes, store=None):
    """The faults of a name, alone or all of them mixed."""
    if store:
        known = faults.ALONE | store_faults.ALONE | (store_faults.ON_CLUSTER if store[0] == "cluster" else {})
    else:
        known = faults.ALONE | (faults.ON_REDIS if nodes else faults.ON_DISK)
    if not name.startswith("mixed"):
        return (known | faults.ON_HTTP2 | faults.WEATHER)[name]
    # A backend is one thing at a time, and a sick one also speaks out of turn.
    mixed = [fault for group in known.values() for fault in group if fault is not faults.speak_out_of_turn]
    # Under libfaketime a busy node does not end within its grace; without it it does.
    return [fault for fault in mixed if name == "mixed" or fault is not faults.drain]
