"""The journal of a run, in the order of observation: the checker's only source."""

import json
import time


class Journal:
    """Entries of a `kind`, each at a moment of the machine's monotonic clock.

    intent     a client wants something: `record`, `rule` (the path of its route); of a batch, each item
    delivery   one delivery of it: from `begun` to `at`; what came of it. In a batch, `batch` is the delivery's name
    sent       a node's request came to the relay before the backend: from here on it may run
    ran        the backend ran it: `serial` names the run, `outcome` its class. The runs of a batch's items have one
               `exchange`, which is the serial of the first; their `attempt` is the name of the batch's delivery
    responded  the backend has written the run's whole response, or that of the exchange which it begins
    lost       it cut the connection so soon after that the response may be lost
    refused    the backend stated that it has not taken what was sent
    misfit     an end found a message out of form: a batch's response, or what the backend got of it
    forgotten  an operator's wish to forget a record was under way from `begun` to `at`; `status` is its response
    store      the store has several servers: its `topology`, and the `replicas` that Semel demands
    gap        from `since` to `at` replicas of the `slots` lacked something; `promoted` if one took over meanwhile
    counted    what a `node` has counted since its start: `failovers`, `suspects`, `superseded`
    stall      since `since` the harness itself stood still, and saw nothing
    fault      something was broken or mended
    calm       no more faults; every intent has to end now
    """

    def __init__(self):
        self.entries = []

    def add(self, kind, **fields):
        entry = {"kind": kind, "at": time.monotonic(), **fields}
        self.entries.append(entry)
        return entry

    def write(self, path):
        with open(path, "w", encoding="utf-8") as file:
            for entry in self.entries:
                file.write(json.dumps(entry) + "\n")

    @classmethod
    def read(cls, path):
        journal = cls()
        with open(path, encoding="utf-8") as file:
            journal.entries = [json.loads(line) for line in file]
        return journal
