"""Planted faults: each is compiled into one build of the simulator, switched on by a variable, and has to be found.

    python3 Tests/Simulation/mutants.py [--seconds N] [NAMES]     each in turn, and the seconds until it was found
    python3 Tests/Simulation/mutants.py [--worlds N] [NAMES]      the same by a number of worlds, whatever time they take
    python3 Tests/Simulation/mutants.py --check                   whether each still fits the sources

The sources stay as they are: a copy of them is changed, under `.build/mutants`. In a mutant's replacement, `PLANTED` is
true while it is switched on.
"""

import os
import pathlib
import re
import subprocess
import sys
import time

from mutant_list import MUTANTS

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPY = ROOT / ".build/mutants"
SWITCH = """
import Glibc

/// The planted fault that is switched on; empty for none.
private let planted = getenv("SEMEL_MUTANT").map { String(cString: $0) } ?? ""

/// Whether this planted fault is switched on.
public func isPlanted(_ name: String) -> Bool { planted == name }
"""


def changed(sources):
    """Returns the changed sources by their paths. Raises ValueError for a mutant that does not fit."""
    texts, errors = {}, []
    for name, edits in MUTANTS.items():
        for path, before, after in edits:
            path = "Sources/" + path
            text = texts.get(path) or (sources / path).read_text()
            if text.count(before) != 1:
                errors.append(f"{name}: {text.count(before)} places in {path} fit {before!r}")
                continue
            texts[path] = text.replace(before, after.replace("PLANTED", f'isPlanted("{name}")'))
    if errors:
        raise ValueError("\n".join(errors))
    for path, text in texts.items():
        if not path.startswith("Sources/Wire/") and not re.search(r"^import Wire$", text, re.M):
            texts[path] = "import Wire\n" + text
    texts["Sources/Wire/Planted.swift"] = SWITCH
    return texts


def make_copy():
    """Brings the copy up to date. What has not changed keeps its time, so that it is not compiled again."""
    texts = {path: text.encode() for path, text in changed(ROOT).items()}
    files = [ROOT / "Package.swift"]
    files += [file for folder in ("Sources", "Tests") for file in (ROOT / folder).rglob("*") if file.is_file()]
    for file in files:
        texts.setdefault(str(file.relative_to(ROOT)), file.read_bytes())
    for folder in ("Sources", "Tests"):
        for file in (COPY / folder).rglob("*"):
            if file.is_file() and str(file.relative_to(COPY)) not in texts:
                file.unlink()
    for path, text in texts.items():
        file = COPY / path
        if not file.exists() or file.read_bytes() != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text)


def build():
    make_copy()
    mode = os.environ.get("SEMEL_MUTANTS_BUILD", "-c release -debug-info-format none --disable-local-rpath").split()
    subprocess.run(["swift", "build", *mode, "--product", "simulate"], cwd=COPY, check=True)
    kind = "release" if "release" in mode else "debug"
    return COPY / ".build" / kind / "simulate"


def tried(binary, name, limit):
    """Runs the simulator with a mutant. Returns the seconds until it was found, and how; or None and what it said."""
    begun = time.monotonic()
    command = [binary, *limit, "--first", "1"]
    run = subprocess.run(command, env=os.environ | {"SEMEL_MUTANT": name}, capture_output=True, text=True)
    took = time.monotonic() - begun
    lines = (run.stdout + run.stderr).strip().splitlines()
    found = [line for line in lines if line.startswith("seed ")]
    if run.returncode not in (0, 1):
        return took, f"ended with {run.returncode}: {(lines or [''])[-1][:100]}"
    return (took, found[0]) if found else (None, lines[-1] if lines else "")


def main(arguments):
    if arguments == ["--check"]:
        changed(ROOT)
        return 0
    limit = ["--seconds", "60"]
    if arguments[:1] in (["--seconds"], ["--worlds"]):
        limit, arguments = arguments[:2], arguments[2:]
    binary = os.environ.get("SEMEL_MUTANTS_BINARY") or build()
    survivors = []
    for name in arguments or MUTANTS:
        took, text = tried(binary, name, limit)
        if took is None:
            survivors.append(name)
        print(f"{name:32} {'survives' if took is None else f'{took:6.1f} s'}  {text[:160]}", flush=True)
    count = len(arguments or MUTANTS)
    print(f"{count - len(survivors)} of {count} were found; not found: {', '.join(survivors) or 'none'}")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
