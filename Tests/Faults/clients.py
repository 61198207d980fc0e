"""Clients as they are: they time out, hang up, tap twice, retry through another node, and err in their keys."""

import asyncio
import hashlib
import json

import backend
import http1

# Fields about the origin of a response, not its content.
STEERING = ("idempotency-status", "idempotent-replayed", "idempotency-recorded-at", "idempotency-expires")
NOT_RECORDED = ("date", "age", "connection", "keep-alive", "transfer-encoding", "content-length")


class Connection(asyncio.Protocol):
    def __init__(self):
        self.transport = None
        self.message = None
        self.response = None

    def connection_made(self, transport):
        self.transport = transport

    def request(self, data):
        self.message = http1.Message(is_response=True)
        self.response = asyncio.get_running_loop().create_future()
        self.transport.write(data)
        return self.response

    def data_received(self, data):
        if not self.response or self.response.done():
            return self.transport.abort()
        self.message.feed(data)
        if self.message.is_whole:
            self.response.set_result(self.message)
        return None

    def connection_lost(self, error):
        if self.response and not self.response.done():
            self.response.set_result(None)


class Gateway:
    """The way to one node: kept connections, and new ones."""

    def __init__(self, port):
        self.port = port
        self.idle = []

    async def connection(self):
        while self.idle:
            connection = self.idle.pop()
            if not connection.transport.is_closing():
                return connection
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(Connection, "127.0.0.1", self.port)
        return connection

    def give_back(self, connection, response):
        if response.fields.get("connection") == "close" or len(self.idle) >= 64:
            connection.transport.abort()
        else:
            self.idle.append(connection)


def fields_of(caller, key):
    return {"Authorization": caller, "Idempotency-Key": key, "Content-Type": "application/json"}


class Intent:
    """One thing that a client wants done once."""

    def __init__(self, number, dice, caller, key, rule):
        self.number = number
        self.dice = dice
        self.caller = caller
        self.key = key
        self.rule = rule
        self.bodies = [json.dumps({"item": number}).encode()]
        self.record = backend.record(caller, f"/{rule}", key)
        self.fields = fields_of(caller, key)
        self.deliveries = 0


class Clients:
    def __init__(self, gateways, journal, dice):
        self.gateways = gateways
        self.journal = journal
        self.dice = dice
        self.phase = "storm"

    async def deliver(self, intent, body=0, time_out=3.0, hang_up=None):
        """One delivery. Returns `(retryable, word)`: whether to come again, and the word of its response."""
        number = intent.deliveries
        intent.deliveries += 1
        node = self.dice.randrange(len(self.gateways))
        begun = asyncio.get_running_loop().time()
        response = await self.exchange(self.gateways[node], intent, intent.bodies[body], time_out, hang_up)
        entry = self.journal.add(
            "delivery",
            intent=intent.number,
            record=intent.record,
            number=number,
            node=node,
            phase=self.phase,
            print=hashlib.sha256(intent.bodies[body]).hexdigest()[:16],
            begun=begun,
            **self.findings(response),
        )
        return entry["retryable"], entry["word"]

    async def exchange(self, gateway, intent, body, time_out, hang_up):
        data = http1.request(f"/{intent.rule}", intent.fields, body)
        try:
            connection = await asyncio.wait_for(gateway.connection(), 2)
        except (OSError, asyncio.TimeoutError):
            return None
        if hang_up is not None:
            # In the middle of its request, or while it waits.
            connection.request(data[: max(1, int(len(data) * min(1, hang_up * 2)))])
            await asyncio.sleep(hang_up * 0.05)
            connection.transport.abort()
            return None
        try:
            response = await asyncio.wait_for(connection.request(data), time_out)
        except asyncio.TimeoutError:
            response = None
        if response is None:
            connection.transport.abort()
        else:
            gateway.give_back(connection, response)
        return response

    @staticmethod
    def findings(response):
        """Returns the response's findings for the journal."""
        if response is None:
            return {"status": 0, "word": "none", "retryable": True}
        # Without the remark that a response is not kept.
        word = response.fields.get("idempotency-status", "?").removesuffix("; kept=no")
        findings = {"status": response.status, "word": word, "retryable": False}
        if response.fields.get("content-type") == "application/problem+json":
            problem = json.loads(response.body)
            findings |= {"word": problem["code"], "retryable": problem["retryable"]}
            return findings | ({"original": problem["original_status"]} if "original_status" in problem else {})
        if findings["word"] in ("not-stored", "unknown"):
            findings["retryable"] = True
        fields = sorted(
            f"{name}: {value}"
            for name, value in response.fields.items()
            if name not in STEERING and name not in NOT_RECORDED
        )
        content = json.loads(response.body)
        if not content:
            return findings  # A farewell: of no run.
        text = f"{response.status} {fields} ".encode() + response.body
        if "taken" in content:
            return findings | {"response": hashlib.sha256(text).hexdigest()[:16], "taken": content["taken"]}
        return findings | {
            "response": hashlib.sha256(text).hexdigest()[:16],
            "serial": content["serial"],
            "ran_print": content["print"],
            "caller": content["caller"],
        }

    async def pursue(self, intent):
        """Delivers an intent until it has ended, or the client has had enough."""
        dice = intent.dice
        pause = 0.02
        if dice.random() < 0.06:
            intent.bodies.append(json.dumps({"item": intent.number, "other": True}).encode())
        for attempt in range(8):
            body = len(intent.bodies) - 1 if attempt > 0 and dice.random() < 0.5 else 0
            deliveries = [self.deliver(intent, body, dice.uniform(0.3, 3), self.hang_up(dice))]
            if dice.random() < 0.1:
                # A double tap; one in three through another payload, where there is one.
                deliveries.append(self.deliver(intent, dice.randrange(len(intent.bodies)), dice.uniform(0.3, 3)))
            outcomes = await asyncio.gather(*deliveries)
            if not all(retryable for retryable, _ in outcomes):
                break
            await asyncio.sleep(dice.uniform(0, pause))
            pause = min(1, pause * 2)
        if dice.random() < 0.2:
            await self.deliver(intent, 0, dice.uniform(0.3, 3))

    @staticmethod
    def hang_up(dice):
        return dice.random() if dice.random() < 0.04 else None

    async def end(self, intent, within):
        """Delivers an intent in calm weather until it has ended. False where it does not."""
        loop = asyncio.get_running_loop()
        limit = loop.time() + within
        body = 0
        while True:
            retryable, word = await self.deliver(intent, body, 10)
            if word == "payload_mismatch" and body + 1 < len(intent.bodies):
                body += 1
            elif not retryable:
                return True
            elif loop.time() > limit:
                return False
            else:
                await asyncio.sleep(0.05)
