"""Runs wrk on one kind of request, and parses its output."""

import re
import subprocess

from lib.terminal import watched

KINDS = {
    # Every key is new: the number of the thread, of the request, and of the run.
    "first": 'request = function() n = n + 1; return order("r" .. run .. "-" .. id .. "-" .. n) end',
    # A thousand keys that were run before.
    "replay": 'request = function() n = n + 1; return order("r" .. run .. "-replay-" .. (n % 1000)) end',
    "mixed": 'request = function() n = n + 1; if n % 2 == 0 then return order("r" .. run .. "-replay-" .. (n % 1000)) end; return order("r" .. run .. "-" .. id .. "-" .. n) end',
    "pass": 'request = function() return wrk.format("GET", "/pass") end',
}

SCRIPT = """
local threads, run, path, authorization = 0, %(run)s, %(path)s, %(authorization)s
function setup(thread) thread:set("id", threads); threads = threads + 1 end
n = 0
function order(key)
  return wrk.format("POST", path, {["Idempotency-Key"] = key, ["Authorization"] = authorization,
    ["Content-Type"] = "application/json"}, '{"item":"book","amount":1999}')
end
%(kind)s
local bad = 0
function response(status) if status < 200 or status > 299 then bad = bad + 1; wrk.thread:set("bad", bad) end end
local all = {}
local old = setup
function setup(thread) old(thread); table.insert(all, thread) end
function done(summary, latency)
  local refused = 0
  for _, thread in ipairs(all) do refused = refused + (thread:get("bad") or 0) end
  local e = summary.errors
  print(string.format("SEMEL %%d %%d %%d %%d %%d %%d", summary.requests, summary.duration, refused,
    e.connect + e.read + e.write + e.timeout, latency:percentile(50), latency:percentile(99)))
end
"""


def quoted(text):
    return '"' + str(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def run(url, kind, seconds, folder, run_name, path, authorization, connections=64, threads=1):
    """Requests, requests a second, those whose response was not 2xx, those lost, and percentiles in ms."""
    script = folder / f"{kind}.lua"
    script.write_text(SCRIPT % {
        "run": quoted(run_name), "path": quoted(path), "authorization": quoted(authorization), "kind": KINDS[kind]})
    with watched(kind, seconds):
        result = subprocess.run(
            ["wrk", "-t", str(threads), "-c", str(connections), "-d", f"{seconds}s", "--timeout", "10s", "-s", str(script), url],
            capture_output=True, text=True)
    found = re.search(r"SEMEL (\d+) (\d+) (\d+) (\d+) (\d+) (\d+)", result.stdout)
    if not found:
        raise SystemExit(f"wrk printed no result:\n{result.stdout}{result.stderr}")
    requests, duration, refused, lost, median, tail = map(int, found.groups())
    return {"requests": requests, "rate": requests / (duration / 1e6), "refused": refused, "lost": lost,
            "p50": median / 1000, "p99": tail / 1000}
