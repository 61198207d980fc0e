"""The faults of a store of several servers. One server fails at a time, and the next once all is well again."""

import asyncio
import contextlib

from faults import step_clock
from losses import slot_of
from relay import Trouble
from repeating import repeated, troubled
from resp import Refused
from topology import repeatedly, until


def at_a_shard(max_pause):
    """Again and again at a shard of a store that works, which has to work again before the next fault."""

    def wrap(body):
        @repeated(max_pause)
        async def fault(rig):
            topology = rig.topology
            async with topology.lock:
                if topology.is_over:
                    return
                await topology.settle()
                await body(rig, rig.dice.choice(topology.shards))
                await topology.settle()
                await asyncio.sleep(rig.dice.uniform(0, rig.pace / 2))

        return fault

    return wrap


async def takeover(rig, shard, former):
    """Waits until another server is the master. False if it does not come: a failover can be given up."""

    async def is_over():
        infos = await asyncio.gather(*(shard.info(server) for server in shard.servers if server is not former))
        return any(info and info["role"] == "master" for info in infos)

    try:
        await until("another server takes over", is_over, within=15)
    except RuntimeError:
        rig.log("nobody took over", former)
        return False
    return True


@at_a_shard(3)
async def kill_master(rig, shard):
    await kill(rig, shard, rig.dice.random() < 0.6)


async def kill(rig, shard, awaits_takeover):
    """Kills the master, and starts it again. Whether another one was seen to take over meanwhile."""
    master = shard.master
    rig.log("server killed", master)
    await master.kill()
    has_successor = awaits_takeover and await takeover(rig, shard, master)
    await asyncio.sleep(rig.dice.uniform(0, 0.5))
    await master.start()
    rig.log("server started", master)
    return has_successor


@at_a_shard(3)
async def pause_master(rig, shard):
    await pause(rig, shard.master, 4)


@at_a_shard(3)
async def pause_replica(rig, shard):
    await pause(rig, rig.dice.choice(shard.replicas), 2)


async def pause(rig, server, longest):
    rig.log("server paused", server)
    server.freeze()
    await asyncio.sleep(rig.dice.uniform(0.05, longest))
    server.thaw()
    rig.log("server goes on", server)


@at_a_shard(3)
async def kill_replica(rig, shard):
    replica = rig.dice.choice(shard.replicas)
    rig.log("server killed", replica)
    await replica.kill()
    await asyncio.sleep(rig.dice.uniform(0, 1.5))
    await replica.start()
    rig.log("server started", replica)


@at_a_shard(3)
async def cut_replication(rig, shard):
    """The replicas get nothing more, and half of the time one of them takes over without it."""
    master = shard.master
    rig.log("replication cut", master)
    master.relay.is_cut_off = True
    try:
        before = await changes(master)
        if await lacks_changes(rig, master, before):
            await asyncio.sleep(rig.dice.uniform(0, 2))
            if rig.dice.random() < 0.5:
                count = await changes(master) - before
                if await kill(rig, shard, True):
                    rig.journal.add("fault", name="promoted without changes", of=master.name, changes=count)
    finally:
        master.relay.join()
        rig.log("replication goes on", master)


async def changes(server):
    """The number of changes that a server has made since its start: it never saves its data as a whole."""
    info = (await repeatedly(server, "INFO", "persistence")).decode()
    return int(info.split("rdb_changes_since_last_save:")[1].split()[0])


async def lacks_changes(rig, master, before):
    """Waits until the master has made a change since then. False if none comes: the storm may be over."""

    async def is_so():
        return rig.topology.is_over or await changes(master) > before

    try:
        await until("the master makes a change", is_so, within=10)
    except RuntimeError:
        rig.log("nothing was changed", master)
        return False
    return not rig.topology.is_over


@at_a_shard(3)
async def fail_over(rig, shard):
    master = shard.master
    rig.log("failover", master)
    try:
        await rig.topology.fail_over(rig, shard)
        await takeover(rig, shard, master)
    except Refused as refusal:
        # Sentinels do not begin one soon after another.
        rig.log(f"failover refused: {refusal}", master)


@at_a_shard(3)
async def migrate(rig, _):
    """A slot of records that are in use moves to another master, and back again."""
    recent = [entry["id"] for entry in rig.journal.entries[-300:] if entry.get("id")]
    if not recent:
        return
    slot = slot_of(rig.dice.choice(recent[-30:]))
    home = next(shard for shard in rig.topology.shards if shard.slots[0] <= slot <= shard.slots[1])
    other = rig.dice.choice([shard for shard in rig.topology.shards if shard is not home])
    for source, target in [(home, other), (other, home)]:
        rig.journal.add("fault", name="slot moves", of=source.master.name, slot=slot)
        await rig.topology.migrate(slot, source, target)
        # A key's move is a write for whose copies nobody waits.
        await rig.topology.settle()
        rig.journal.add("fault", name="slot moved", of=target.master.name, slot=slot)
        await asyncio.sleep(rig.dice.uniform(0, 0.5))


@repeated(1)
async def flush_scripts(rig):
    server = rig.dice.choice(rig.topology.servers)
    with contextlib.suppress(OSError, Refused):
        await server.client.call("SCRIPT", "FLUSH")
        rig.log("scripts flushed", server)


ALONE = {
    "masters killed": [kill_master],
    "masters paused": [pause_master],
    "replicas killed": [kill_replica],
    "replicas paused": [pause_replica],
    "replication cut": [cut_replication],
    "failovers": [fail_over],
    "scripts flushed": [flush_scripts],
    "Redis' network": [
        troubled(lambda rig: rig.redis_relays, Trouble(cut=1, lose=1.5, ghost=1.5, delay=2)),
    ],
    "Redis' clock stepped": [step_clock],
}
ON_CLUSTER = {"slots migrated": [migrate]}
