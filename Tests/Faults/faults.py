"""The faults: each goes on until it is cancelled, and leaves all mended behind."""

import asyncio
import contextlib
import os
import resource
import signal

import backend
import settings
from relay import CALM, Trouble
from repeating import repeated, troubled


@contextlib.asynccontextmanager
async def a_node(rig, name):
    """A node that no other fault is at."""
    node = rig.dice.choice(rig.nodes)
    if node.lock.locked():
        yield None
        return
    async with node.lock:
        rig.log(name, node)
        yield node


@repeated(1.5)
async def kill(rig):
    async with a_node(rig, "kill") as node:
        if node:
            await node.kill()
            await asyncio.sleep(rig.dice.uniform(0, 0.5))
            rig.log("starts", node)
            await node.start()
            rig.log("started", node)


@repeated(1.5)
async def freeze(rig):
    async with a_node(rig, "freeze") as node:
        if node:
            node.freeze()
            # Mostly beyond the lease.
            await asyncio.sleep(rig.dice.uniform(0.2, settings.LEASE * 2.5))
            node.thaw()
            rig.log("thaw", node)


@repeated(2)
async def drain(rig):
    async with a_node(rig, "drain") as node:
        if node:
            if not await node.drain():
                rig.log("did not drain", node)
            rig.log("starts", node)
            await node.start()
            rig.log("started", node)


@repeated(1.5)
async def reload(rig):
    async with a_node(rig, "reload") as node:
        if node:
            node.signal(signal.SIGHUP)


@repeated(3)
async def kill_redis(rig):
    async with rig.redis.lock:
        rig.log("kill", rig.redis)
        await rig.redis.kill()
        await asyncio.sleep(rig.dice.uniform(0, 1))
        await rig.redis.start()
        rig.log("started", rig.redis)


async def wipe_redis(rig):
    """Once, early: of what a store has forgotten nothing more can be proved."""
    await asyncio.sleep(rig.dice.uniform(1, 6))
    await asyncio.shield(rig.track(wipe(rig)))
    await asyncio.Event().wait()


async def wipe(rig):
    async with rig.redis.lock:
        rig.log("wipe", rig.redis)
        await rig.redis.kill()
        rig.redis.forget()
        await rig.redis.start()
        rig.log("wiped", rig.redis)


@repeated(2)
async def pause_redis(rig):
    async with rig.redis.lock:
        if rig.dice.random() < 0.5:
            rig.log("freeze", rig.redis)
            rig.redis.freeze()
            await asyncio.sleep(rig.dice.uniform(0.05, 2))
            rig.redis.thaw()
        else:
            span = rig.dice.randrange(50, 1500)
            rig.log("pause", rig.redis)
            await rig.redis.query("CLIENT", "PAUSE", str(span), rig.dice.choice(["ALL", "WRITE"]))
            await asyncio.sleep(span / 1000)
        rig.log("goes on", rig.redis)


@repeated(2)
async def step_clock(rig):
    """The clock of the store's machines is set: forwards beyond every lease, or back by less than a client waits."""
    # Replication ends at a step beyond its time-out, a minute.
    steps = [1, 2, 5, 20, -1, -2, -4] if rig.topology else [1, 2, 5, 20, 300, -1, -2, -4]
    seconds = rig.dice.choice(steps)
    rig.journal.add("fault", name="clock stepped", of="the store", seconds=seconds)
    rig.clock.step(seconds)


@repeated(0.25)
async def forget(rig):
    """An operator forgets a record, whatever state it is in, mostly one that is under way."""
    recent = [entry for entry in rig.journal.entries[-300:] if entry["kind"] in ("sent", "ran")]
    # The backend would go on to state what it ran before.
    recent = [entry for entry in recent if "|/ask|" not in entry["record"]]
    if recent:
        entry = rig.dice.choice(recent[-20:])
        node = rig.dice.choice(rig.nodes)
        # The backend learns no id of a batch's item.
        id_ = entry["id"] or await node.find(entry["record"])
        if id_:
            await node.forget(id_, entry["record"], rig.journal)


client_network = troubled(lambda rig: rig.client_relays, Trouble(cut=2, lose=2, ghost=1, delay=5))
redis_network = troubled(lambda rig: rig.redis_relays, Trouble(cut=1, lose=1.5, ghost=1.5, delay=2))
backend_network = troubled(lambda rig: rig.backend_relays, Trouble(cut=2, lose=2, ghost=1, delay=3, longest=1.5))


def backend_of(shares):
    async def fault(rig):
        rig.backend.shares = shares(rig)
        try:
            await asyncio.Event().wait()
        finally:
            rig.backend.shares = backend.HEALTHY

    return fault


@repeated(3)
async def refuse(rig):
    """The backend's machine refuses connections, as when its process is restarted."""
    await rig.dice.choice(rig.backend_relays).refuse(rig.dice.uniform(0.05, 1))


@repeated(3)
async def full_disk(rig):
    """The embedded store's files may grow no more, which is what a full disk is to it."""
    async with a_node(rig, "disk full") as node:
        if node:
            fills = rig.dice.random() < 0.5 and rig.disk.is_real
            span = rig.dice.uniform(0.1, 1.5)
            if fills:
                rig.disk.fill()
            else:
                limit = max(os.path.getsize(path) for path in rig.store_files())
                resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            await asyncio.sleep(span)
            rig.disk.free()
            if node.process.poll() is None:
                resource.prlimit(
                    node.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
                )
            rig.log("disk free", node)


@repeated(0.3)
async def freeze_long(rig):
    """Until another node has taken over what this one had sent."""
    async with a_node(rig, "freeze") as node:
        if node:
            node.freeze()
            await asyncio.sleep(settings.LEASE + settings.SETTLE + rig.dice.uniform(0.3, 1.5))
            node.thaw()
            rig.log("thaw", node)


async def haunt_redis(rig):
    """Commands come twice: at once on a new connection, and late."""
    try:
        for relay in rig.redis_relays:
            relay.trouble = Trouble(ghost=20, longest=1)
        await asyncio.Event().wait()
    finally:
        for relay in rig.redis_relays:
            relay.trouble = CALM


speak_out_of_turn = backend_of(lambda rig: rig.backend.unasked)

# By name: the faults that run at once, and what they need: Redis, a disk of their own, or a backend over HTTP/2.
ALONE = {
    "none": [],
    "node killed": [kill],
    "node frozen": [freeze],
    "node drained": [drain],
    "SIGHUP": [reload],
    "operator forgets": [forget],
    "client's network": [client_network],
    "backend": [backend_of(lambda rig: rig.backend.sick), refuse],
    "backend speaks out of turn": [speak_out_of_turn],
    "backend's network": [backend_network],
    "clocks apart": [],
}
ON_REDIS = {
    "Redis killed": [kill_redis],
    "Redis paused": [pause_redis],
    "Redis' network": [redis_network],
    "Redis' clock stepped": [step_clock],
    "Redis emptied": [wipe_redis],
}
ON_DISK = {"disk full": [full_disk]}
ON_HTTP2 = {"streams refused": [backend_of(lambda _: backend.REFUSING)]}

# For the planted bugs alone: the weather in which each shows soon.
WEATHER = {
    "slow, and frozen": [backend_of(lambda _: {"slow": 80}), freeze_long],
    "slow, rejected, and forgotten": [backend_of(lambda _: {"slow": 50, "rejected": 35}), *[forget] * 9],
    "busy, and haunted": [backend_of(lambda _: {"busy": 80}), haunt_redis],
}
