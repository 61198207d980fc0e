"""The planted faults: by name, each as edits of files below `Sources`. Each area has a file of them in `planted`."""

from planted import batches, lifecycle, meanings, operators, redis_scripts, redis_store, rules, run, wire

MUTANTS = {}
for area in (rules, operators, lifecycle, meanings, run, batches, redis_scripts, redis_store, wire):
    doubles = MUTANTS.keys() & area.MUTANTS.keys()
    if doubles:
        raise ValueError(f"names that stand for two faults: {doubles}")
    MUTANTS |= area.MUTANTS
