"""Runs Semel among faults, and checks the executions that its clients and its backend have seen.

python3 Tests/Faults --binary .build/release/semel --faults mixed --nodes 2 --intents 1000
    [--backend-protocol http2 | --topology cluster]
"""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import checker
import faults
import redis_relay
import store_faults
import table
import topology
import backend_relay
from journal import Journal
from rig import FAKETIME, Rig, storm

BUGS = [*redis_relay.PLANTED, *backend_relay.PLANTED]


def arguments():
    parser = argparse.ArgumentParser(prog="Tests/Faults", description=__doc__)
    parser.add_argument("--binary", default=".build/debug/semel")
    names = ["mixed", "mixed, clocks apart", *faults.ALONE, *faults.ON_REDIS, *faults.ON_DISK, *faults.ON_HTTP2]
    names += [name for name in [*store_faults.ALONE, *store_faults.ON_CLUSTER] if name not in names]
    names += faults.WEATHER
    parser.add_argument("--faults", choices=names, default="mixed")
    parser.add_argument("--nodes", type=int, default=2, choices=[0, 1, 2, 4], help="0: one, on its embedded store")
    parser.add_argument("--topology", choices=list(topology.KINDS), help="several servers of Redis instead of one")
    parser.add_argument(
        "--replicas", type=int, default=1, help="with --topology: those that Semel demands; with 0 writes may be lost"
    )
    parser.add_argument(
        "--backend-protocol", default="http1", choices=["http1", "http2"], help="http2 needs the Python package h2"
    )
    parser.add_argument("--sealed", action="store_true", help="with store.encryption")
    parser.add_argument("--intents", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=150, help="intents that begin in a second")
    parser.add_argument("--seconds", type=float, default=120, help="after which no more intents begin")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plant", choices=BUGS, help="a bug that the checker has to find")
    parser.add_argument("--keep", help="a file for the journal; without it, kept where something was violated")
    parser.add_argument("--results", help="a file to which the result is added as a line of JSON; see table.py")
    parser.add_argument("--check", help="reads this journal and runs nothing")
    return parser.parse_args()


async def run(options, directory):
    clocks_apart = options.faults.endswith("clocks apart")
    if clocks_apart and not FAKETIME:
        sys.exit("clocks are set apart by libfaketime, which is not here: install Debian's package faketime")
    is_http2 = options.backend_protocol == "http2"
    if options.faults in faults.ON_HTTP2 and not is_http2:
        sys.exit(f"{options.faults}: only with --backend-protocol http2")
    if is_http2 and options.plant in backend_relay.PLANTED:
        sys.exit(f"{options.plant} is planted into HTTP/1.1 alone")
    store = (options.topology, options.replicas) if options.topology else None
    if store and not options.nodes:
        sys.exit("--topology is one of Redis: at least one node")
    try:
        storms = storm(options.faults, options.nodes, store)
    except KeyError:
        sys.exit(f"{options.faults}: not with this store")
    rig = Rig(
        options.binary, directory, options.seed, options.nodes, clocks_apart, options.plant, is_http2, store=store
    )
    rig.is_sealed = options.sealed
    try:
        await rig.start()
        intents = await rig.run(storms, options.intents, options.rate, options.seconds)
        await rig.end(intents)
    finally:
        await rig.stop()
    return rig.journal


def name(options):
    protocol = ", HTTP/2" if options.backend_protocol == "http2" else ""
    return options.faults + protocol + (", sealed" if options.sealed else "")


def row(options, counts, violations):
    where = table.place(vars(options))
    cells = [name(options), where, counts["intents"], counts["deliveries"], counts["executions"]]
    cells += [counts["replays"], counts["unknown"], counts["faults"], violations]
    return "| " + " | ".join(f"{cell:,}" if isinstance(cell, int) else cell for cell in cells) + " |"


def report_on(options, journal):
    report = checker.check(journal)
    print(row(options, report.counts, len(report.violations)))
    print(f"  {report.counts['items']:,} of the intents are items of {report.counts['batches']:,} delivered batches")
    if "lost" in report.counts:
        words = ("lost", "failovers", "suspects", "promotions without changes", "changes lacked")
        print("  " + ", ".join(f"{word}: {report.counts[word]}" for word in words))
    for excuse, count in report.excused.items():
        print(f"  excused: {excuse}: {count}")
    for rule, record, text in report.violations[:20]:
        print(f"  VIOLATED {rule}: {record}: {text}")
    return report


def note(options, report):
    result = report.counts | {"faults": name(options), "nodes": options.nodes, "seed": options.seed}
    result |= {"topology": options.topology, "replicas": options.replicas}
    result |= {"excused": sum(report.excused.values()), "violations": len(report.violations)}
    with open(options.results, "a", encoding="utf-8") as file:
        file.write(json.dumps(result) + "\n")


def main():
    options = arguments()
    if options.check:
        return 1 if report_on(options, Journal.read(options.check)).violations else 0
    options.binary = os.path.abspath(options.binary)
    directory = tempfile.mkdtemp(prefix="semel-faults-")
    start = time.monotonic()
    journal = asyncio.run(run(options, directory))
    report = report_on(options, journal)
    print(f"  {time.monotonic() - start:.0f} s, seed {options.seed}")
    if options.results:
        note(options, report)
    if options.keep:
        journal.write(options.keep)
    if report.violations and not options.plant:
        journal.write(os.path.join(directory, "journal"))
        print(f"  the journal and the logs are in {directory}")
    else:
        shutil.rmtree(directory, ignore_errors=True)
    if options.plant:
        print(f"  {options.plant}: {'found out' if report.violations else 'NOT FOUND OUT'}")
        return 0 if report.violations else 1
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())
