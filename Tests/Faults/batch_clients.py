"""Clients that send batches: their items overlap, change their payload, and come again alone or in other company."""

import asyncio
import dataclasses
import hashlib
import json
import re

import backend
import batches
from clients import Clients, fields_of

# The payloads of an item: its own is changed or not, and so is what stands around the items.
PAYLOADS = [(False, "eur"), (True, "eur"), (False, "usd"), (True, "usd")]
# Of the records that batches share: the successive batches of a pool, and its items.
BATCHES_OF_A_POOL = 4
ITEMS_OF_A_POOL = 8
LABEL = re.compile(r"batch; executed=(\d+); replayed=(\d+); refused=(\d+)")


class Batch:
    """Several things that a client wants done once each. Other batches hold some of them, too."""

    rule = batches.RULE

    def __init__(self, number, count, dice):
        self.number = number
        self.dice = dice
        pool = count // BATCHES_OF_A_POOL
        self.caller = f"caller{pool % 7}"
        # Two callers use the same keys now and then, for things of their own.
        keys = [f"b{pool - 1 if pool % 10 == 9 else pool}-{place}" for place in range(ITEMS_OF_A_POOL)]
        self.keys = dice.sample(keys, dice.choice((1, 1, 2, 3, 4, 6)))
        self.deliveries = 0

    def record(self, key):
        return backend.record(self.caller, batches.PATH, key)


@dataclasses.dataclass
class Delivery:
    """One request, with a name of its own for both ends: Semel passes it on as it comes."""

    batch: Batch
    name: str
    orders: list
    currency: str
    rule = batches.RULE

    @property
    def fields(self):
        fields = fields_of(self.batch.caller, self.name)
        return fields | ({"Prefer": "wait=0"} if self.batch.dice.random() < 0.1 else {})

    @property
    def items(self):
        """The record of each item, and its payload's digest."""
        return [(self.batch.record(each["id"]), batches.print_of(each, self.currency)) for each in self.orders]


class BatchClients:
    def __init__(self, clients):
        self.clients = clients
        self.journal = clients.journal

    async def deliver(self, batch, payloads, currency, time_out=3.0, hang_up=None):
        """One delivery of some items, given as pairs of a key and whether its payload is changed.

        Returns for each key `(retryable, word)`: whether to come again, and the word about it in the response.
        """
        orders = [batches.order(batch.caller, key, is_other) for key, is_other in payloads]
        delivery = Delivery(batch, f"{batch.number}.{batch.deliveries}", orders, currency)
        batch.deliveries += 1
        node = self.clients.dice.randrange(len(self.clients.gateways))
        begun = asyncio.get_running_loop().time()
        body = batches.request_body(orders, currency)
        response = await self.clients.exchange(self.clients.gateways[node], delivery, body, time_out, hang_up)
        ends = {}
        for (key, _), (record, print_), findings in zip(payloads, delivery.items, self.findings(response, delivery)):
            entry = self.journal.add(
                "delivery", intent=batch.number, record=record, number=batch.deliveries - 1, batch=delivery.name,
                node=node, phase=self.clients.phase, print=print_, begun=begun, **findings,
            )  # fmt: skip
            ends.setdefault(key, (entry["retryable"], entry["word"]))
        return ends

    # The response's findings for the journal, one for each item

    def findings(self, response, delivery):
        count = len(delivery.orders)
        if response is None:
            return [Clients.findings(response)] * count
        if response.fields.get("content-type") == "application/problem+json":
            original = json.loads(response.body).get("original_status")
            return [Clients.findings(response) | {"original": original}] * count
        if "batch" in response.fields.get("idempotency-status", ""):
            return self.assembled(response, delivery)
        # The backend's own, to all items together.
        findings = Clients.findings(response)
        if "serial" not in findings:
            return [findings] * count
        runs = {key: run for key, *run in json.loads(response.body).get("batch", [])}
        ends = [runs.get(each["id"], (-1, "")) for each in delivery.orders]
        return [findings | {"serial": serial, "ran_print": print_} for serial, print_ in ends]

    def assembled(self, response, delivery):
        text = response.body.decode()
        texts = batches.elements(text)
        if len(texts) != len(delivery.orders):
            self.misfit(delivery, f"{len(texts)} elements for {len(delivery.orders)} items")
            return [{"status": response.status, "word": "misfit", "retryable": False}] * len(delivery.orders)
        findings = [self.element(each, response.status, delivery) for each in texts]
        self.check_label(response, findings, delivery)
        around = json.loads(text)
        if around.get("delivery", delivery.name) != delivery.name or set(around) not in (
            {"results"},
            {"results", "serial", "caller", "delivery"},
        ):
            self.misfit(delivery, f"stands in what another delivery got: {text[-200:]}")
        return findings

    @staticmethod
    def element(text, status, delivery):
        content = json.loads(text)
        if "code" in content:
            findings = {"status": content["status"], "word": content["code"], "retryable": content["retryable"]}
            return findings | {"original": content.get("original_status")}
        return {
            "status": status,
            "word": "executed" if content["delivery"] == delivery.name else "replayed",
            "retryable": False,
            "response": hashlib.sha256(text.encode()).hexdigest()[:16],
            "serial": content["serial"],
            "ran_print": content["print"],
            "caller": content["caller"],
        }

    def check_label(self, response, findings, delivery):
        label = response.fields["idempotency-status"]
        found = LABEL.fullmatch(label)
        counts = [int(number) for number in found.groups()] if found else [0, 0, 0]
        results = sum("serial" in each for each in findings)
        if counts[0] + counts[1] != results or counts[2] != len(findings) - results:
            self.misfit(delivery, f"{label}, with {results} results of {len(findings)} elements")
        if (response.status == 207) != (results < len(findings)):
            self.misfit(delivery, f"{response.status}, with {results} results of {len(findings)} elements")

    def misfit(self, delivery, text):
        self.journal.add("misfit", record=f"{delivery.batch.caller}|{batches.PATH}|{delivery.name}", text=text)

    # The client's patience

    async def pursue(self, batch):
        """Delivers a batch until its items have ended, or the client has had enough."""
        dice = batch.dice
        keys, pause = batch.keys, 0.02
        for _ in range(8):
            deliveries = [self.once(batch, keys, self.clients.hang_up(dice))]
            if dice.random() < 0.1:
                deliveries.append(self.once(batch, keys))
            ends = await asyncio.gather(*deliveries)
            left = [key for key in keys if any(end[key][0] for end in ends)]
            if not left:
                break
            # The same again, or alone what did not end.
            keys = left if dice.random() < 0.5 else batch.keys
            await asyncio.sleep(dice.uniform(0, pause))
            pause = min(1, pause * 2)
        if dice.random() < 0.2:
            await self.once(batch, batch.keys)

    def once(self, batch, keys, hang_up=None):
        """A delivery in any order, now and then with a changed payload, or the same key twice."""
        dice = batch.dice
        payloads = [(key, dice.random() < 0.02) for key in dice.sample(keys, len(keys))]
        if dice.random() < 0.05:
            payloads.append((dice.choice(keys), dice.random() < 0.5))
        currency = "usd" if dice.random() < 0.02 else "eur"
        return self.deliver(batch, payloads, currency, dice.uniform(0.3, 3), hang_up)

    async def end(self, batch, within):
        """Delivers a batch in calm weather until each item has ended. False where one does not."""
        loop = asyncio.get_running_loop()
        limit = loop.time() + within
        open_ = dict.fromkeys(batch.keys, 0)
        while open_:
            currency = PAYLOADS[min(open_.values())][1]
            keys = [key for key, payload in open_.items() if PAYLOADS[payload][1] == currency]
            payloads = [(key, PAYLOADS[open_[key]][0]) for key in keys]
            for key, (is_retryable, word) in (await self.deliver(batch, payloads, currency, 10)).items():
                if word == "payload_mismatch" and open_[key] + 1 < len(PAYLOADS):
                    open_[key] += 1
                elif not is_retryable:
                    del open_[key]
            if open_ and loop.time() > limit:
                return False
            await asyncio.sleep(0.05 if open_ else 0)
        return True
