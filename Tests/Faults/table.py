"""Prints the results of many runs as one table: python3 Tests/Faults/table.py RESULTS"""

import collections
import json
import sys

COLUMNS = ["intents", "deliveries", "executions", "replays", "unknown", "excused", "violations"]


def main():
    rows = collections.defaultdict(collections.Counter)
    with open(sys.argv[1], encoding="utf-8") as file:
        for line in file:
            result = json.loads(line)
            where = f"{result['nodes']} on Redis" if result["nodes"] else "1, embedded"
            rows[result["faults"], where].update({column: result[column] for column in COLUMNS})
    print("| faults | nodes | " + " | ".join(COLUMNS) + " |")
    print("|---|---|" + "--:|" * len(COLUMNS))
    total = collections.Counter()
    for (faults, where), counts in rows.items():
        total.update(counts)
        print(f"| {faults} | {where} | " + " | ".join(f"{counts[column]:,}" for column in COLUMNS) + " |")
    print("| all | | " + " | ".join(f"{total[column]:,}" for column in COLUMNS) + " |")


if __name__ == "__main__":
    main()
