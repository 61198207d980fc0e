"""Real processes on SemelOutbox among faults: python3 Tests/Faults/outbox.py --semel FILE --client FILE.

Each client is one SQLite file, on which two processes enqueue and send orders. They die at every boundary and are
started again; files are put back from older copies, disks are full, clocks are set back, and tokens die under load.
Meanwhile Semel and Redis are killed, and the backend loses responses. The checker then joins the clients' files with
the backend's journal. With --bug a mistake is planted, which it has to find: the command then fails if it does not.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import sqlite3
import sys
import tempfile
import time
from collections import Counter, defaultdict
from urllib.parse import parse_qs, urlsplit

import settings
from nodes import Process, Redis, free_port
from stepped_clock import SteppedClock

# The mistakes that can be planted, and the beginning of the violation that each has to be found by.
BUGS = {
    "new_key_per_try": "keys",
    "delete_before_commit": "unsettled",
    "enqueue_outside_transaction": "lost",
    "refresh_by_each_call": "refresh",
    "order_by_time": "order",
    "guard_in_memory": "duplicate",
}


class Shop:
    """The backend and the server of tokens. It keeps a journal of what it ran and of who refreshed."""

    def __init__(self, dice, token_deaths):
        self.dice, self.token_deaths = dice, token_deaths
        self.port = None
        self.executions = []  # (key, group, number), in their order
        self.keys = defaultdict(set)  # of each order, all keys under which it came
        self.tokens = Counter()
        self.refreshing = Counter()
        self.overlaps = 0
        self.refreshes = 0

    async def start(self):
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]

    async def serve(self, reader, writer):
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                line, *lines = head.decode().rstrip().split("\r\n")
                fields = {name.lower(): value for name, value in (text.split(": ", 1) for text in lines)}
                body = await reader.readexactly(int(fields.get("content-length", 0)))
                reply = await self.reply(line.split(" ")[1], fields, body)
                if reply is None:
                    break
                status, more, text = reply
                writer.write(f"HTTP/1.1 {status} Status\r\nContent-Length: {len(text)}\r\n{more}\r\n{text}".encode())
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def reply(self, target, fields, body):
        """A status, further fields and a text, or None: the connection breaks."""
        if target.startswith("/token/"):
            return await self.token(urlsplit(target))
        account, _, number = fields.get("authorization", "").removeprefix("Bearer ").partition(".")
        if number != str(self.tokens[account]):
            return 401, "", ""
        if self.dice.random() < self.token_deaths:
            self.tokens[account] += 1  # It dies with this request.
        order = json.loads(body)
        self.keys[order["group"], order["number"]].add(fields["idempotency-key"])
        fate = self.dice.random()
        if fate < 0.02:
            return None
        if fate < 0.04:
            return 503, "Retry-After: 1\r\n", ""
        if order["number"] % 50 == 7:
            return 422, "", "refused"
        self.executions.append((fields["idempotency-key"], order["group"], order["number"]))
        if fate < 0.06:
            return None
        if fate < 0.07:
            await asyncio.sleep(settings.RESPONSE_TIMEOUT + 0.2)
        return 201, "Content-Type: application/json\r\n", json.dumps({"id": len(self.executions)})

    async def token(self, url):
        query = parse_qs(url.query)
        account, process = query["account"][0], query["process"][0]
        if url.path == "/token/refresh":
            self.refreshes += 1
            self.refreshing[process] += 1
            self.overlaps += self.refreshing[process] > 1
            await asyncio.sleep(0.02)
            self.refreshing[process] -= 1
            self.tokens[account] += 1
        return 200, "", f"{account}.{self.tokens[account]}"


class Semel(Process):
    def __init__(self, binary, directory, redis_port, backend_port):
        self.port, admin = free_port(), free_port()
        store = f"kind: redis, url: 'redis://127.0.0.1:{redis_port}', timeout: {settings.ms(settings.STORE_TIMEOUT)}"
        text = settings.text(self.port, admin, store, backend_port, "off")
        text = text.replace("header:Authorization", "header:X-Device-ID")  # Tokens change, and the caller must not.
        path = os.path.join(directory, "semel.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        super().__init__("semel", [binary, "run", "--config", path], directory)

    async def is_up(self):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self.port)
            writer.close()
            return True
        except OSError:
            return False


class Client:
    """Two processes on one file."""

    def __init__(self, index, rig):
        self.rig = rig
        self.device = f"device-{index}"
        self.file = os.path.join(rig.directory, f"{self.device}.sqlite")
        self.first, self.count = 0, rig.arguments.intents // rig.arguments.clients
        self.processes = []
        self.kills = 0
        self.is_held = asyncio.Event()
        self.is_held.set()
        self.has_its_file = asyncio.Event()  # Not while an older copy of the file is about to be put back.
        self.has_its_file.set()

    def plan(self, role):
        path = os.path.join(self.rig.directory, f"{self.device}-{role}.json")
        plan = {
            "file": self.file,
            "origin": f"http://127.0.0.1:{self.rig.semel.port}",
            "tokens": f"http://127.0.0.1:{self.rig.shop.port}",
            "account": f"{self.device}-{role}",
            "device": self.device,
            "first": self.first,
            "count": self.count,
            "groups": 40,
            "deathRate": self.rig.arguments.death_rate,
            "clockFile": self.rig.clock_file,
            "fillsDisk": not self.rig.arguments.bug,
            "bug": self.rig.arguments.bug,
        }
        with open(path, "w", encoding="utf-8") as file:
            json.dump(plan, file)
        return path

    async def run(self, role):
        """Starts a process until it ends by itself."""
        process = Process(f"{self.device}-{role}", [self.rig.arguments.client, self.plan(role)], self.rig.directory)
        self.processes.append(process)
        while True:
            await self.is_held.wait()
            process.spawn()
            await process.ended()
            code = process.process.returncode
            if code == 0:
                if self.has_its_file.is_set():
                    return
                await self.has_its_file.wait()
                continue
            if code != -9:
                raise RuntimeError(f"{process.name} ended with {code}: {process.last_lines()}")
            self.kills += 1

    def query(self, text):
        with sqlite3.connect(f"file:{self.file}?mode=ro", uri=True, timeout=20) as database:
            return database.execute(text).fetchall()

    def open_orders(self):
        """The orders without an end, once all of them are bought; before that none."""
        try:
            states = self.query("SELECT state FROM purchase")
        except sqlite3.OperationalError:  # The file is new.
            return 0
        return len(states) - states.count(("ended",)) if len(states) == self.count else 0

    async def restore(self):
        """Puts the file back as it was some time ago. All orders were in it, and some of them were open."""
        while not self.open_orders():
            await asyncio.sleep(0.1)
        self.has_its_file.clear()
        await self.stop()
        copies = [(path, path + ".copy") for end in ("", "-wal") if os.path.exists(path := self.file + end)]
        for path, copy in copies:
            shutil.copyfile(path, copy)
        self.is_held.set()
        await asyncio.sleep(self.rig.dice.uniform(2, 6))
        await self.stop()
        for end in ("", "-wal", "-shm"):
            if os.path.exists(self.file + end):
                os.remove(self.file + end)
        for path, copy in copies:
            os.replace(copy, path)
        self.has_its_file.set()
        self.is_held.set()
        self.rig.faults["file restored"] += 1

    async def stop(self):
        self.is_held.clear()
        for process in self.processes:
            process.signal(9)
            await process.ended()


class Rig:
    def __init__(self, arguments, directory):
        self.arguments, self.directory = arguments, directory
        self.dice = random.Random(arguments.seed)
        self.clock_file = os.path.join(directory, "client-clock")
        self.set_clock(0)
        self.shop = Shop(self.dice, arguments.token_deaths)
        self.faults = Counter()

    def set_clock(self, seconds):
        with open(self.clock_file + ".new", "w", encoding="utf-8") as file:
            file.write(str(seconds))
        os.replace(self.clock_file + ".new", self.clock_file)

    async def run(self):
        await self.shop.start()
        self.redis = Redis(self.directory, SteppedClock(self.directory))
        await self.redis.start()
        self.semel = Semel(self.arguments.semel, self.directory, self.redis.port, self.shop.port)
        await self.semel.start()
        self.clients = [Client(index, self) for index in range(self.arguments.clients)]
        runs = [asyncio.create_task(client.run(role)) for client in self.clients for role in ("app", "extension")]
        troubles = [asyncio.create_task(work) for work in (self.kill_servers(), self.set_clocks(), self.restore_files())]
        _, late = await asyncio.wait(runs, timeout=self.arguments.limit, return_when=asyncio.FIRST_EXCEPTION)
        for task in [*troubles, *late]:
            task.cancel()
        for client in self.clients:
            await client.stop()
        for process in (self.semel, self.redis):
            await process.kill()
        # A fault that failed by itself would be missing from the run without a word.
        for task in [*runs, *troubles]:
            if task.done() and not task.cancelled() and task not in late:
                task.result()
        return bool(late)

    async def kill_servers(self):
        while True:
            await asyncio.sleep(self.dice.uniform(3, 8))
            server = self.redis if self.dice.random() < 0.3 else self.semel
            await server.kill()
            await asyncio.sleep(self.dice.uniform(0, 0.5))
            await server.start()
            self.faults[f"{server.name} killed"] += 1

    async def set_clocks(self):
        while True:
            await asyncio.sleep(self.dice.uniform(5, 15))
            self.set_clock(self.dice.choice([-3600, -60, 0]))
            self.faults["clock set"] += 1

    async def restore_files(self):
        await asyncio.gather(*(client.restore() for client in self.clients[::2]))


def check(rig):
    """The violations, and how the intents ended."""
    executed = Counter(key for key, *_ in rig.shop.executions)
    violations, ends = [], Counter()
    for client in rig.clients:
        wanted = set(range(client.first, client.first + client.count))
        rows = client.query("SELECT once, grp, key, ending, body, state FROM semel_intent ORDER BY id")
        numbers = [int(once) for once, *_ in rows if once]
        if rig.arguments.bug != "guard_in_memory" and (missing := wanted - set(numbers)):
            violations.append(f"lost: {len(missing)} orders of {client.device} were never enqueued")
        if unsettled := client.query("SELECT number FROM purchase WHERE state <> 'ended' AND intent IS NOT NULL"):
            violations.append(f"unsettled: the application learns no end of {len(unsettled)} orders of {client.device}")
        for once, _, key, ending, _, state in rows:
            ends[ending or "open"] += 1
            count = executed[key]
            if state != 3:
                violations.append(f"open: order {once} of {client.device} has no end")
            elif ending == "completed" and count != 1:
                violations.append(f"{'lost' if count == 0 else 'duplicate'}: order {once} was executed {count} times")
            elif ending in ("rejected", "expired", "cancelled") and count:
                violations.append(f"untrue: order {once} of {client.device} is {ending} and was executed")
            elif ending == "unknown" and count > 1:
                violations.append(f"duplicate: order {once} of {client.device} was executed {count} times")
    orders = Counter((group, number) for _, group, number in rig.shop.executions)
    for (group, number), count in orders.items():
        if count > 1:
            violations.append(f"duplicate: order {number} of {group} was executed {count} times")
    for (group, number), keys in rig.shop.keys.items():
        if len(keys) > 1:
            violations.append(f"keys: order {number} of {group} came under {len(keys)}")
    last = {}
    for _, group, number in rig.shop.executions:
        if last.get(group, -1) > number:
            violations.append(f"order: {number} of {group} was executed after {last[group]}")
        last[group] = max(number, last.get(group, -1))
    if rig.shop.overlaps:
        violations.append(f"refresh: {rig.shop.overlaps} refreshes of a process began during another")
    return violations, ends


async def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--semel", required=True)
    parser.add_argument("--client", required=True)
    parser.add_argument("--intents", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--death-rate", type=float, default=0.01)
    parser.add_argument("--token-deaths", type=float, default=0.02)
    parser.add_argument("--limit", type=float, default=600)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--bug", choices=BUGS)
    arguments = parser.parse_args()
    arguments.semel, arguments.client = os.path.abspath(arguments.semel), os.path.abspath(arguments.client)
    with tempfile.TemporaryDirectory() as directory:
        rig, start = Rig(arguments, directory), time.monotonic()
        is_late = await rig.run()
        violations, ends = check(rig)
        if is_late:
            violations.append(f"late: orders were open after {arguments.limit} s")
        figures = {
            "seed": arguments.seed,
            "intents": arguments.intents,
            "client kills": sum(client.kills for client in rig.clients),
            **rig.faults,
            "refreshes": rig.shop.refreshes,
            "executions": len(rig.shop.executions),
            **{f"ends {name}": count for name, count in sorted(ends.items())},
            "violations": len(violations),
            "seconds": round(time.monotonic() - start),
        }
        print(" | ".join(f"{name} {value}" for name, value in figures.items()))
        for violation in violations[:10]:
            print(f"  {violation}")
        if arguments.bug:
            return int(not any(violation.startswith(BUGS[arguments.bug]) for violation in violations))
        return int(bool(violations))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
