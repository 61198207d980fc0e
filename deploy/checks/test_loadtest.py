"""Each load test, for a few seconds: that it works, that it can say no, and that it counts right. SEMEL_BINARY names the binary."""

import http.server
import os
import pathlib
import pty
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
import xml.etree.ElementTree

LOADTEST = pathlib.Path(__file__).resolve().parent.parent / "loadtest"
sys.path.insert(0, str(LOADTEST))

from lib import arrivals, svg
from lib.commands import Watch
from lib.histogram import Histogram
from lib.resp import Redis
from lib.rig import HERE, Rig, free_port

# Some 340 were measured, however many records there are. Redis takes memory in steps of 64 bytes for a text of this
# length: with 13 more, by the name of this node or of a backend that is not nginx, a record takes the next step.
RECORD_BYTES = 350 if len(socket.gethostname()) <= 15 and shutil.which("nginx") else 350 + 64


def run(name, *arguments):
    return subprocess.run([str(LOADTEST / name), *map(str, arguments)], capture_output=True, text=True, timeout=170)


class Scripts(unittest.TestCase):
    def good(self, name, *arguments, svg=False):
        with tempfile.TemporaryDirectory() as folder:
            picture = pathlib.Path(folder) / "picture.svg"
            result = run(name, *arguments, *(["--svg", picture] if svg else []))
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            self.assertIn("GOOD: ", result.stdout.splitlines()[-1])
            if svg:
                self.assertTrue(xml.etree.ElementTree.parse(picture).getroot().tag.endswith("svg"))

    def bad(self, result, *failures):
        """That a script says no for these reasons. One that breaks off ends with 1 as well."""
        self.assertEqual((result.returncode, result.stderr), (1, ""), result.stdout)
        for failure in failures:
            self.assertIn(failure, result.stdout)

    def test_throughput(self):
        self.good("throughput", "--duration", 2, "--rate", 200, "--p99-ms", 1000, svg=True)

    def test_storm(self):
        self.good("storm", "--clients", 200, "--outage", 1, svg=True)
        self.good("storm", "--clients", 400, "--outage", 2, "--budget", 20)

    def test_duplicates(self):
        self.good("duplicates", "--keys", 50, "--deliveries", 6)

    def test_duplicates_on_the_embedded_store(self):
        self.good("duplicates", "--keys", 50, "--deliveries", 6, "--nodes", 1, "--store", "embedded")

    def test_soak(self):
        # Of so short a time only the machine's other work shows in the latency.
        self.good("soak", "--duration", 8, "--window", 2, "--rate", 50, "--latency-drift", 1000, svg=True)

    def test_a_drift_is_found(self):
        result = run("soak", "--duration", 8, "--window", 2, "--rate", 50, "--latency-drift", -1000, "--memory-drift", -1000)
        self.bad(result, "latency drifts", "memory drifts")

    def test_redis(self):
        self.good(
            "redis", "--duration", 2, "--records", 5000, "--first-us", 1000, "--replay-us", 1000, "--record-bytes", RECORD_BYTES,
            "--saturated", 2000, "--rounds", 1, "--saturated-first-us", 1000, "--saturated-replay-us", 1000)

    def test_a_redis_that_costs_too_much_is_found(self):
        result = run(
            "redis", "--duration", 2, "--records", 1000, "--record-bytes", 1, "--saturated", 2000, "--rounds", 1,
            "--saturated-first-us", 1, "--saturated-replay-us", 1)
        self.bad(result, "bytes beyond its response, more than 1", "of a saturated Redis, more than 1")

    def test_topologies(self):
        self.good("topologies", "--duration", 1, "--rounds", 1, "--rate", 100, "--cpu-ratio", 100, "--uneven", 1)

    def test_a_cluster_that_costs_too_much_is_found(self):
        result = run("topologies", "--duration", 1, "--rounds", 1, "--rate", 100, "--cpu-ratio", 0.01, "--uneven", 1)
        self.bad(result, "of that on one Redis, more than 0.01")

    def test_against(self):
        self.good("against", "--duration", 2, "--first-ratio", 100, "--peer-ratio", 100)


class Verdict(unittest.TestCase):
    def test_duplicates_without_semel_are_found(self):
        port, control = free_port(), free_port()
        backend = subprocess.Popen([sys.executable, HERE / "backend.py", str(port), str(control)], stdout=subprocess.PIPE)
        try:
            backend.stdout.readline()
            result = run(
                "duplicates", "--url", f"http://127.0.0.1:{port}", "--count-url", f"http://127.0.0.1:{control}/count",
                "--keys", 5, "--deliveries", 3)
        finally:
            backend.terminate()
            backend.wait()
            backend.stdout.close()
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("the backend ran 15 times for 5 keys", result.stdout)


class Pausing(http.server.ThreadingHTTPServer):
    """Responds to nobody between two moments, in seconds after the first request."""

    daemon_threads = True

    def __init__(self, pause, end):
        super().__init__(("127.0.0.1", 0), Paused)
        self.pause, self.end, self.first, self.ended = pause, end, None, threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        """Nothing: wrk ends its connections in the middle."""

    def stop(self):
        self.ended.set()
        self.shutdown()
        self.server_close()


class Paused(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.first = self.server.first or time.monotonic()
        passed = time.monotonic() - self.server.first
        if self.server.pause < passed < self.server.end:
            self.server.ended.wait(self.server.end - passed)
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Arrivals(unittest.TestCase):
    def send(self, pause, end):
        server = Pausing(pause, end)
        self.addCleanup(server.stop)
        with tempfile.TemporaryDirectory() as folder:
            return arrivals.send(
                f"http://127.0.0.1:{server.server_port}", "first", 200, 4, pathlib.Path(folder), "run", "/", "nobody", connections=4)

    def test_latency_counts_from_when_a_request_was_due(self):
        histogram, statuses = self.send(1, 2)
        self.assertEqual(set(statuses), {201})
        # A quarter of all requests were due in the second without a response, and each of four connections sent one then.
        self.assertGreater(histogram.percentile(85), 250)
        self.assertGreater(histogram.percentile(99), 800)

    def test_requests_that_are_held_up_until_the_end_count(self):
        histogram, statuses = self.send(1, 3600)
        self.assertLess(statuses[201], 400)
        self.assertAlmostEqual(histogram.total, 800, delta=80)
        self.assertGreater(histogram.percentile(60), 1000)


class Terminal(unittest.TestCase):
    def test_progress_is_shown_on_a_terminal(self):
        control, terminal = pty.openpty()
        command = [LOADTEST / "storm", "--clients", "100", "--outage", "3"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=terminal, text=True, env={**os.environ, "TERM": "xterm"}) as process:
            output, _ = process.communicate(timeout=170)
        os.close(terminal)
        shown = os.read(control, 65536).decode()
        os.close(control)
        self.assertEqual(process.returncode, 0, output + shown)
        self.assertIn("\r\x1b[K0 of 100 clients have their response", shown)
        self.assertTrue(shown.endswith("\r\x1b[K"), shown)
        self.assertNotIn("\x1b", output)


class Pictures(unittest.TestCase):
    def test_the_axis_of_latencies_begins_near_the_least(self):
        histogram = Histogram()
        for value in range(2300, 30_000):
            histogram.record(value)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "picture.svg"
            svg.percentiles(file, "title", [("first", histogram)])
            texts = [element.text for element in xml.etree.ElementTree.parse(file).iter() if element.tag.endswith("text")]
        self.assertEqual(texts[1:4], ["10", "20", "50"])
        self.assertEqual(texts[4:6], ["50%", "90%"])


class Counting(unittest.TestCase):
    def test_percentiles_are_exact_to_one_per_cent(self):
        histogram = Histogram()
        for value in range(1, 100_001):
            histogram.record(value)
        for percent in (1, 50, 90, 99, 99.9):
            wanted = percent * 1000 / 1000
            self.assertAlmostEqual(histogram.percentile(percent), wanted, delta=wanted * 0.01 + 0.001)
        self.assertEqual(histogram.percentile(100), 100)

    def test_a_renewed_claim_is_no_replay(self):
        nothing = types.SimpleNamespace(url=["http://127.0.0.1:1"], admin_url=None, count_url=None, cache=None)
        with Rig(nothing) as rig, Watch(port := rig.start_redis()) as watch:
            redis = Redis(port)
            claim, complete = [redis.command("SCRIPT", "LOAD", f"return {number}").decode() for number in (1, 2)]
            for key, digests in [("{renewed}", [claim] * 3), ("{watched}", [claim, complete, claim])]:
                for digest in digests:
                    redis.command("EVALSHA", digest, 1, key, "owner")
            redis.close()
            first, second, third = watch.commands()
        self.assertEqual([first[1], second[1], third[1]], [claim.encode(), complete.encode(), claim.encode()])
        self.assertEqual(second[3:], [b"{watched}", b"owner"])

    def test_histograms_add_up(self):
        one, two = Histogram(), Histogram()
        for value in (10, 20, 30):
            one.record(value)
        for value in (40, 5_000_000):
            two.record(value)
        one.add(two)
        self.assertEqual((one.total, one.percentile(50), one.percentile(100)), (5, 0.03, 5000))


if __name__ == "__main__":
    unittest.main()
