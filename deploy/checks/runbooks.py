"""The rig of test_runbooks.py: the pages' commands, Semel with Redis in a situation that was planted, and Prometheus' own
evaluation of the alerts on its metrics."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

import yaml

from clients import BINARY, DEPLOY, PATIENCE, Backend, unused_port

PAGE = (DEPLOY / "runbooks.md").read_text()
MANUAL = DEPLOY / "manual"
ALERTS = DEPLOY / "monitoring/alerts.yaml"


def rules(file=ALERTS):
    """The alerting rules by name."""
    groups = yaml.safe_load(file.read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def runbooks():
    """The page's chapters by alert, each the list of its console blocks."""
    chapters = re.split(r"^## (Semel\w+)$", PAGE, flags=re.M)
    return {name: blocks(chapter) for name, chapter in zip(chapters[1::2], chapters[2::2])}


def manual_blocks(name):
    """The console blocks of a page of the manual."""
    return blocks((MANUAL / name).read_text())


def blocks(text):
    return [Block(block) for block in re.findall(r"^```console\n(.*?)^```$", text, re.M | re.S)]


class Block:
    """Commands with the output that the page shows for each."""

    def __init__(self, text):
        self.steps = []
        for command, output in re.findall(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", text, re.M):
            self.steps.append((command, output))


class Names:
    """The values that differ from run to run: the page's examples, and what stands for each in this run."""

    # The name of this machine as records have it, which is a node's, and the page's.
    NODES = rf"(?<!\S)(orders-1|{re.escape(re.sub(r'[^A-Za-z0-9._-]', '_', socket.gethostname())[-24:])})(?!\S)"
    # Ids of records, digests and ports are the same throughout one run; times, ages, sizes and what idle nodes count
    # are of no interest.
    SAME = re.compile(
        r"(?<![\w-])[\w-]{43}(?![\w-])|(?<![.\w-])[0-9a-f]{8}(?![\w-])|(?<=127\.0\.0\.1:)\d+|(?<=127\.0\.0\.1 port )\d+"
        r"|(?<=127\.0\.0\.1,port=)\d+")
    FREE = re.compile(
        r"\b(\d{4}-\d\d-\d\dT)?\d\d:\d\d:\d\d(\.\d+)?Z|\b[0-9a-f]{12}\b|\b(\d+[mhd] )?\d+(\.\d+)? ?(ms|[smhd])\b"
        r"|(?<=_ms\":)[\d.]+|(?<=_bytes\":)\d+|(?<=semel_body_bytes )\d+|node_replies_total\{[^}]*\} \d+"
        r"|(?<=semel_leases_lapsed_total )\d+|jwks_fetch(es|_failures)_total \d+"
        r"|(?<=semel_event_loop_lag_)seconds_\w+(\{[^}]*\})? \d+|seconds(_total)?(\{[^}]*\})?\"?[ :]+[\d.e-]+"
        r"|(?<=semel_store_wait_seconds_)bucket\{[^}]*\} [1-9]\d*|(?<=redirects_total\{kind=\"down\"\} )[1-9]\d*"
        r"|(?<=lines_dropped_total )[1-9]\d*|(?<=lines dropped\",\"count\":)[1-9]\d*"
        r"|(?<=offset[=:])\d+|(?<=,lag=)([2-9]|\d\d+)\b|@\d+")

    def __init__(self, **known):
        self.live = known  # by the page's text

    def replaced(self, command):
        """A command of the page, about what there is in this run."""
        return re.sub(r"[\w-]+", lambda word: self.live.get(word[0], word[0]), command)

    def match(self, page, lines):
        """Whether the page's lines are these. A line `…` stands for any number of lines."""
        found = self.matched(page, lines, self.live)
        self.live = self.live if found is None else found
        return found is not None

    def matched(self, page, lines, live):
        """What stands for the page's examples, if its lines are these."""
        if not page:
            return None if lines else live
        if page[0] == "…":
            rests = (self.matched(page[1:], lines[skipped:], live) for skipped in range(len(lines) + 1))
            return next((rest for rest in rests if rest is not None), None)
        if not lines or self.shape(page[0]) != self.shape(lines[0]):
            return None
        for one, other in zip(self.SAME.findall(page[0]), self.SAME.findall(lines[0])):
            # Each example stands for one thing, and each thing has one example.
            if live.get(one, other) != other or any(one != shown for shown, thing in live.items() if thing == other):
                return None
            live = {**live, one: other}
        return self.matched(page[1:], lines[1:], live)

    def shape(self, line):
        return " ".join(re.sub(self.NODES, "N", self.FREE.sub("N", self.SAME.sub("X", line))).split())


class Redis:
    """A Redis that can be stopped, and come back without what it had."""

    # As the manual wants it.
    DURABLE = ("--appendonly", "yes")

    def __init__(self, folder, *options):
        self.folder, self.options, self.port = folder, options, unused_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.folder.mkdir(exist_ok=True)
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            ["redis-server", *self.options, "--port", str(self.port), "--dir", str(self.folder), "--save", ""],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(lambda: self.responds() or self.process.poll() is not None)
        assert self.process.poll() is None, "Redis does not start"

    def responds(self):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(7) == b"+PONG\r\n"

    def call(self, *words):
        """Sends a command, and returns the reply as the client shows it."""
        command = ["redis-cli", "-p", str(self.port), *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE).stdout

    def stop(self):
        self.process.kill()
        self.process.wait()

    def lose_everything(self):
        self.stop()
        for path in self.folder.glob("appendonlydir*"):
            shutil.rmtree(path)
        self.start()


class Sentinel(Redis):
    """A Sentinel of the master `orders`, which takes it for dead only when it is told to look for that."""

    def __init__(self, folder, master):
        folder.mkdir()
        (folder / "sentinel.conf").write_text(
            f"sentinel monitor orders 127.0.0.1 {master.port} 1\nsentinel failover-timeout orders 3000\n")
        super().__init__(folder, str(folder / "sentinel.conf"), "--sentinel")
        self.looks_after(milliseconds=3600000)

    def looks_after(self, milliseconds):
        self.call("sentinel", "set", "orders", "down-after-milliseconds", milliseconds)


class Node:
    """Semel with its store and backend, and a shell for the person on call."""

    ROUTE = """{name: create-order, match: {methods: [POST], path: "/v1/orders/**"},
  caller: {parts: ["header:Authorization"]}, wait_timeout: 1s"""

    def __init__(self, folder, redis=Redis.DURABLE, route="lease: 2s", top="", store="", admin=""):
        """`redis` is a server that is there, options for a new one, or None for the embedded store; the others are members
        of the configuration, `store` in the place of Redis' URL."""
        self.folder = folder
        self.process = None
        self.backend = Backend()
        self.log = open(folder / "log", "wb")
        self.redis = Redis(folder, *redis) if isinstance(redis, tuple) else redis
        try:
            self.port, self.admin = unused_port(), unused_port()
            self.configure(route, top, store, admin)
            self.tools()
            self.start()
            self.before = self.scrape()
        except BaseException:
            self.stop()
            raise

    def configure(self, route, top, store, admin):
        if self.redis:
            store = "kind: redis, " + (store or f"url: '{self.redis.url}'")
        else:
            store = f"kind: embedded, path: '{self.folder}/semel.db'"
        (self.folder / "semel.yaml").write_text(f"""
listen: [{{address: "127.0.0.1:{self.port}"}}]
admin: {{address: "127.0.0.1:{self.admin}"{", " + admin if admin else ""}}}
upstreams: {{orders: {{url: "http://127.0.0.1:{self.backend.server_port}", response_timeout: 20s, settle: 1s}}}}
store: {{{store}}}
workers: 2
routes:
- {self.ROUTE}, {route}}}
{top}
""")

    def tools(self):
        """The programs of a production host, as far as the page uses them."""
        tools = self.folder / "bin"
        tools.mkdir()
        (tools / "semel").symlink_to(BINARY)
        # A unit's journal has lines of systemd, too.
        journal = f"cat {self.folder}/log; [ \"$1\" = -t ] || echo 'semel.service: Deactivated successfully.'"
        for name, text in {"journalctl": journal, "systemctl": f"kill -HUP $(cat {self.folder}/pid)"}.items():
            (tools / name).write_text(f"#!/bin/sh\n{text}\n")
            (tools / name).chmod(0o755)

    def start(self, *under):
        """Starts Semel, under another program if one is given."""
        self.responses = 0  # that `order` gets
        self.process = subprocess.Popen(
            [*under, BINARY, "run", "--config", str(self.folder / "semel.yaml")], stdout=self.log, stderr=self.log,
            start_new_session=True)
        (self.folder / "pid").write_text(str(self.process.pid))
        until(lambda: self.process.poll() is not None or self.responds("/livez"), "semel does not start")
        assert self.process.poll() is None, (self.folder / "log").read_text()

    def start_beside(self, change):
        """Starts another node on the same store, whose configuration `change` makes of this one's."""
        text = (self.folder / "semel.yaml").read_text()
        for port in (self.port, self.admin):
            text = text.replace(f":{port}\"", f":{unused_port()}\"")
        (self.folder / "other.yaml").write_text(change(text))
        with open(self.folder / "other.log", "wb") as log:
            return subprocess.Popen([BINARY, "run", "--config", str(self.folder / "other.yaml")], stdout=log, stderr=log)

    def stop(self):
        if self.process:
            # With what it runs under.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.log.close()
        if self.redis:
            self.redis.stop()
        self.backend.stop()

    def restart(self, *under):
        self.terminate()
        self.start(*under)

    def terminate(self):
        self.process.terminate()
        self.process.wait(PATIENCE)

    def responds(self, path):
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{self.admin}{path}", timeout=5) as page:
            return page.status == 200

    @property
    def prometheus_token(self):
        """The file with the admin token that Prometheus has, if there is one."""
        return self.folder / "prometheus-token"

    def scrape(self):
        """What Prometheus has of the node."""
        try:
            return {"up": 1.0, **self.metrics()}
        except OSError:
            return {"up": 0.0}

    def metrics(self):
        request = urllib.request.Request(f"http://127.0.0.1:{self.admin}/metrics")
        if self.prometheus_token.exists():
            request.add_header("Authorization", f"Bearer {self.prometheus_token.read_text()}")
        with urllib.request.urlopen(request, timeout=PATIENCE) as page:
            lines = [line.rsplit(" ", 1) for line in page.read().decode().splitlines() if not line.startswith("#")]
        return {name: float(value) for name, value in lines}

    def figure(self, name):
        """A metric: a series, or all those of a family added up."""
        return sum(value for series, value in self.metrics().items() if series == name or series.split("{")[0] == name)

    def order(self, key, script="plain", caller="Bearer alice", body=b'{"item":"book"}', path="/v1/orders", host=None):
        """Sends an order, and returns its status."""
        fields = {"Content-Type": "application/json", "Idempotency-Key": key, "Authorization": caller}
        if host:
            fields["Host"] = host
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}/{script}", body, fields)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as response:
                status = response.status
        except urllib.error.HTTPError as error:
            status = error.code
        self.responses += 1
        return status

    def hold(self, key):
        """Sends an order that the backend has not ended with when this returns."""
        def send():
            with contextlib.suppress(OSError):
                self.order(key, "held")
        threading.Thread(target=send, daemon=True).start()
        until(lambda: self.backend.attempts["/v1/orders/held"])

    def shell(self, command):
        """Runs a command of the page; its output and its exit code."""
        environment = {
            **os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
            "SEMEL_ADMIN": f"http://127.0.0.1:{self.admin}"}
        if self.redis:
            environment["REDIS"] = self.redis.url
        command = command.replace("/etc/semel/config.yaml", str(self.folder / "semel.yaml"))
        command = command.replace("/etc/prometheus/semel-admin-token", str(self.prometheus_token))
        ended = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command], cwd=self.folder, env=environment, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
        return ended.stdout.replace(str(self.folder / "semel.yaml"), "/etc/semel/config.yaml"), ended.returncode


def until(condition, otherwise="it did not happen"):
    # The open records are counted twice a minute.
    deadline = time.monotonic() + 2 * PATIENCE
    while not condition():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.05)


class Prometheus:
    """Prometheus' own evaluation of the rules, on a node's page as it would be scraped once a minute."""

    QUIET, LASTS = 5, 90  # minutes before a situation, and of it
    AGES = re.compile(r"semel_(oldest_open_record|jwks_age)_seconds")
    COUNTS = re.compile(r"\w+_(total|bucket|sum|count)\b")

    def __init__(self, folder):
        self.file = folder / "alerts.test.yaml"

    def verdict(self, before, after, alerts):
        """What promtool objects to, if just these alerts are expected to fire while the situation between two pages goes
        on: counters grow as they did, and ages with time. None may fire before. With no alerts, none may fire at all."""
        watched = set(re.findall(r"\b(?:semel_\w+|up\b)", " ".join(rule["expr"] for rule in rules().values())))
        series = [{"series": self.labelled(name), "values": self.values(name, before.get(name), after.get(name))}
                  for name in {**before, **after} if name.split("{")[0] in watched]
        end = f"{self.QUIET + self.LASTS}m"
        fired = 'count(max_over_time(ALERTS{alertname="%s",alertstate="firing"}[2h])) >= bool 1'
        expected = [{"expr": fired % alert, "eval_time": end, "exp_samples": [{"labels": "{}", "value": 1}]}
                    for alert in alerts]
        none = {"expr": "count(ALERTS)", "eval_time": f"{self.QUIET}m" if alerts else end, "exp_samples": []}
        self.file.write_text(yaml.safe_dump({
            "rule_files": [str(ALERTS)], "evaluation_interval": "1m",
            "tests": [{"interval": "1m", "input_series": series, "promql_expr_test": [none, *expected]}]}))
        ended = subprocess.run(["promtool", "test", "rules", str(self.file)], capture_output=True, text=True)
        return ended.stdout + ended.stderr if ended.returncode else ""

    @staticmethod
    def labelled(name):
        family, _, labels = name.partition("{")
        return family + "{" + ",".join(filter(None, [labels.rstrip("}"), 'instance="orders-1:8081"'])) + "}"

    def values(self, name, before, after):
        start = f"_x{self.QUIET + 1}" if before is None else f"{before!r}+0x{self.QUIET}"
        if after is None:
            return f"{start} stale"
        if self.COUNTS.match(name):
            # After a restart it counts from zero.
            step = after - before if before is not None and before <= after else after
            return f"{start} {after!r}+{step!r}x{self.LASTS}"
        return f"{start} {after!r}+{60 if after and self.AGES.match(name) else 0}x{self.LASTS}"
