"""Prints the results of many runs as tables: python3 Tests/Faults/table.py RESULTS"""

import collections
import json
import sys

COLUMNS = ["intents", "deliveries", "executions", "replays", "unknown", "excused", "violations"]
# Of a store of several servers, too.
LOSSES = ["failovers", "lost", "suspects"]


def place(result):
    """The nodes and their store."""
    if result.get("topology"):
        return f"{result['nodes']} on {result['topology'].capitalize()}, replicas {result['replicas']}"
    return f"{result['nodes']} on Redis" if result["nodes"] else "1, embedded"


def show(results, columns):
    rows = collections.defaultdict(collections.Counter)
    for result in results:
        rows[result["faults"], place(result)].update({column: result[column] for column in columns})
    print("| faults | nodes | " + " | ".join(columns) + " |")
    print("|---|---|" + "--:|" * len(columns))
    total = collections.Counter()
    for (faults, where), counts in rows.items():
        total.update(counts)
        print(f"| {faults} | {where} | " + " | ".join(f"{counts[column]:,}" for column in columns) + " |")
    print("| all | | " + " | ".join(f"{total[column]:,}" for column in columns) + " |")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        results = [json.loads(line) for line in file]
    show([result for result in results if not result.get("topology")], COLUMNS)
    print()
    show([result for result in results if result.get("topology")], COLUMNS[:-1] + LOSSES + COLUMNS[-1:])


if __name__ == "__main__":
    main()
