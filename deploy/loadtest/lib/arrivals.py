"""Requests at a constant rate of arrivals, sent by wrk.

A thread of wrk has one connection, and sends each request when it is due, whether or not the target is quick. Latency counts
from then: a stall shows in every request that it held up, also in those that were not sent before the end. `h2load --rps`
gives all requests the same fields, and so cannot send first runs."""

import re
import subprocess

from lib.histogram import Histogram
from lib.terminal import watched
from lib.wrk import quoted

# The key of the request of a number, on a connection that has a name of its own.
KEYS = {
    "first": '"r" .. run .. "-" .. id .. "-" .. n',
    # A hundred keys that were run before, or are with the first of their requests.
    "replay": '"r" .. run .. "-replay-" .. (n % 100)',
    # Of three requests two are first runs; the third repeats one.
    "mixed": '"r" .. run .. "-" .. id .. "-" .. (n % 3 == 2 and n - 1 or n)',
}

SCRIPT = """
local ffi = require("ffi")
ffi.cdef[[
  struct moment { long seconds, nanoseconds; };
  int clock_gettime(int clock, struct moment *now);
  int clock_nanosleep(int clock, int flags, const struct moment *moment, struct moment *left);
]]
local MONOTONIC, ABSOLUTE = 1, 1
local moment = ffi.new("struct moment")
local function now()
  ffi.C.clock_gettime(MONOTONIC, moment)
  return tonumber(moment.seconds) * 1e6 + tonumber(moment.nanoseconds) / 1e3
end
local function sleep(wanted)
  moment.seconds = math.floor(wanted / 1e6)
  moment.nanoseconds = (wanted - tonumber(moment.seconds) * 1e6) * 1e3
  ffi.C.clock_nanosleep(MONOTONIC, ABSOLUTE, moment, nil)
end

local run, interval, connections = %(run)s, %(interval)s, %(connections)d
local threads = {}
function setup(thread) thread:set("id", #threads); table.insert(threads, thread) end

n, due = 0, 0
local log, begun, fields
function init()
  log = io.open(%(log)s .. id, "w")
  fields = {["Authorization"] = %(authorization)s, ["Content-Type"] = "application/json"}
end
function request()
  -- The connections take turns.
  if not begun then
    begun = now() + interval * id / connections
    log:write("0 ", math.floor(begun), "\\n")
  end
  due = begun + n * interval
  if due > now() then sleep(due) end
  fields["Idempotency-Key"] = %(key)s
  n = n + 1
  return wrk.format("POST", %(path)s, fields, '{"item":"book"}')
end
function response(status)
  log:write(status, " ", math.floor(now() - due), "\\n")
end
function done(summary)
  local e = summary.errors
  print(string.format("SEMEL %%d %%d", e.connect + e.read + e.write, now()))
end
"""


def send(url, kind, rate, seconds, folder, run_name, path, authorization, connections=64):
    """The histogram of the latencies, and the responses by status; those that did not come count as `lost`."""
    connections = max(1, min(connections, int(rate)))
    interval = 1e6 * connections / rate
    log = folder / f"arrivals-{kind}-{run_name}-"
    script = folder / f"arrivals-{kind}-{run_name}.lua"
    script.write_text(SCRIPT % {
        "run": quoted(run_name), "interval": interval, "connections": connections,
        "log": quoted(log), "authorization": quoted(authorization), "path": quoted(path), "key": KEYS[kind]})
    with watched(f"{kind} at {rate:g} a second", seconds):
        result = subprocess.run(
            ["wrk", "-t", str(connections), "-c", str(connections), "-d", f"{seconds}s", "--timeout", "60s", "-s", str(script), url],
            capture_output=True, text=True)
    found = re.search(r"SEMEL (\d+) (\d+)", result.stdout)
    if not found:
        raise SystemExit(f"wrk printed no result:\n{result.stdout}{result.stderr}")
    lost, end = map(int, found.groups())
    histogram, statuses = Histogram(), {"lost": lost} if lost else {}
    for number in range(connections):
        file = folder / f"{log.name}{number}"
        [(_, begun), *responses] = [tuple(map(int, line.split())) for line in file.read_text().splitlines()] or [(0, end)]
        file.unlink()
        for status, microseconds in responses:
            histogram.record(microseconds)
            statuses[status] = statuses.get(status, 0) + 1
        # Those that were due, and had no response at the end.
        for due in range(begun + int(len(responses) * interval), end, int(interval)):
            histogram.record(end - due)
    return histogram, statuses
