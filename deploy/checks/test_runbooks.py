"""The commands of deploy/runbooks.md and of a page of the manual, run in the situations that they are for, and the alerts
that lead to the runbooks. Run by deploy/test; SEMEL_BINARY names the binary."""

import concurrent.futures
import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import runbooks
from pages import anchors
from runbooks import Node, until

BOOKS, RULES = runbooks.runbooks(), runbooks.rules()
OPEN = 'semel_open_records{state="%s"}'


class Situation:
    """A node in trouble, the alerts that this sets off, and the chapters for those who are called."""

    alerts = ()  # those that its metrics set off; their chapters are run in this order
    chapters = ()  # others that are run there
    manual = ()  # pages of the manual that are run there
    block = None  # the number of the block that is run there, if the chapter's others are for other situations
    options = {}
    otherwise = {}  # what its metrics are in other times, if it begins with the node

    def __init__(self, folder):
        self.folder = folder
        self.ends = contextlib.ExitStack()

    def begin(self):
        self.start_node(**self.options)

    def start_node(self, **options):
        self.node = Node(self.folder, **options)
        self.ends.callback(self.node.stop)

    def start_redis(self, name, *options):
        """Starts a server beside the node's own, which may be the node's store."""
        server = runbooks.Redis(self.folder / name, *runbooks.Redis.DURABLE, *options)
        self.ends.callback(server.stop)
        return server

    def start_replica(self, master, *options):
        replica = self.start_redis("replica", "--replicaof", "127.0.0.1", str(master.port), *options)
        until(lambda: "state=online" in master.call("info", "replication"))
        return replica

    def plant(self):
        pass

    def blocks(self):
        """The chapters that are run there by name, each with the numbers of its blocks."""
        for name in self.alerts + self.chapters:
            yield name, range(len(BOOKS[name])) if self.block is None else [self.block]

    def lose_store(self):
        # A claim on a connection that is just being made would get no reply, and its request would not run.
        until(lambda: self.node.responds("/readyz"))
        self.node.redis.stop()
        until(lambda: self.node.figure("semel_store_connections_up") == 0)

    def await_count(self):
        """A request is counted when its response has been written, which its reader may outrun."""
        until(lambda: not self.node.responses or self.node.figure("semel_requests_total") >= self.node.responses)


class Unknown(Situation):
    alerts = ("SemelOutcomesBeingLost", "SemelOutcomesUnknown", "SemelClientsMeetUnknown", "SemelOutcomesGrow")
    otherwise = {OPEN % "unknown": 0}  # which is there once the node has counted

    def plant(self):
        for number in range(12):
            assert self.node.order(f"order-{number}", "cut") == 502
        # A record counts once, when the client comes back to what no longer settles by itself.
        returns = 'semel_unknown_returns_total{route="create-order"}'
        until(lambda: [self.node.order(f"order-{number}", "cut") for number in (3, 4, 5)] == [409] * 3
              and self.node.figure(returns) == 3)
        until(lambda: self.node.figure(OPEN % "unknown") == 12)


class StoreAway(Situation):
    alerts = ("SemelStoreAway", "SemelStoreFails")

    def plant(self):
        self.node.order("order-1")
        self.lose_store()
        for _ in range(2):
            assert self.node.order("order-2") == 503


class Open(Situation):
    alerts = ("SemelRunsUnprotected",)
    options = {"route": "lease: 2s, on_store_failure: open"}

    def plant(self):
        self.lose_store()
        for _ in range(2):
            assert self.node.order("order-1") == 201
            # Until its run has ended, the next delivery is known for a duplicate, and refused.
            self.await_count()


class Forgot(Situation):
    alerts = ("SemelStoreForgot",)

    def plant(self):
        self.node.order("order-1")
        self.node.redis.lose_everything()
        until(lambda: self.node.figure("semel_store_losses_total") > 0)


class Lossy(Situation):
    alerts = ("SemelStoreLossy",)
    options = {"redis": ("--appendonly", "no")}
    otherwise = {"semel_store_doubts": 0}

    def plant(self):
        until(lambda: self.node.figure("semel_store_doubts") > 0)


class Unreadable(Situation):
    alerts = ("SemelRecordsUnreadable",)

    def plant(self):
        self.node.order("order-1")
        output, _ = self.node.shell("redis-cli -u $REDIS --scan --pattern 'semel:{*'")
        self.node.shell(f"redis-cli -u $REDIS set '{output.split()[0]}' damaged")
        until(lambda: self.node.figure(OPEN % "unreadable") == 1)


class KeysUnprotected(Situation):
    alerts = ("SemelKeysUnprotected",)

    def plant(self):
        for number in range(2):
            assert self.node.order(f"order-{number}", path="/v2/orders") == 201


class CallersChange(Situation):
    alerts = ("SemelCallersChange",)

    def plant(self):
        for key in ("6c84fb90-12c4-11e1-840d-7b25c5ee775a", "110ec58a-a0f2-4ac4-8393-c866d813b8d1",
                    "9f1c2b7e-5c51-4b7a-9a64-0d3f5b1f7c22"):
            for caller in ("Bearer early", "Bearer refreshed"):
                assert self.node.order(key, caller=caller) == 201


class KeysMisused(Situation):
    alerts = ("SemelKeysMisused",)

    def plant(self):
        for number in range(8):
            assert self.node.order(f"6c84fb90-12c4-11e1-840d-7b25c5ee77{number:02}") == 201


class TokenKeys(Situation):
    alerts = ("SemelTokenKeysMissing",)
    chapters = ("SemelTokenKeysOld",)
    otherwise = {"semel_jwks_keys": 1}

    def begin(self):
        url = f"http://127.0.0.1:{runbooks.unused_port()}/keys"
        self.start_node(top=f"jwt: {{jwks_url: '{url}', issuer: me, audience: orders}}")


class StoreSlow(Situation):
    alerts = ("SemelStoreSlow",)

    def plant(self):
        for number in range(3):
            self.node.shell("redis-cli -u $REDIS client pause 200")
            assert self.node.order(f"order-{number}") == 201


class Leases(Situation):
    alerts = ("SemelLeasesLapse", "SemelEventLoopsLag")

    def plant(self):
        self.node.hold("order-1")
        self.node.process.send_signal(signal.SIGSTOP)
        # Longer than the lease. Nothing happens that one could wait for.
        time.sleep(3)
        self.node.process.send_signal(signal.SIGCONT)
        until(lambda: self.node.figure("semel_leases_lapsed_total") > 0)
        until(lambda: "in_flight" in self.node.shell("semel key list")[0])


class Memory(Situation):
    alerts = ("SemelMemoryNearBound", "SemelOverloaded")
    options = {"top": "limits: {body_memory: 8MiB, body_timeout: 300s}"}

    def plant(self):
        head = "POST /v1/orders/plain HTTP/1.1\r\nHost: orders\r\nIdempotency-Key: order-%d\r\nAuthorization: Bearer alice\r\n" \
               "Content-Length: 1048576\r\n\r\n"
        for number in range(6):
            upload = self.ends.enter_context(socket.create_connection(("127.0.0.1", self.node.port)))
            upload.sendall((head % number).encode() + bytes(1040000))
        until(lambda: self.node.figure("semel_body_bytes") > 6 * 1040000 - 6 * 4096)
        assert self.node.order("order-7", body=bytes(80000)) == 503
        until(lambda: self.node.figure("semel_open_connections") == 6)


class Mismatches(Situation):
    alerts = ("SemelMismatches",)
    options = {"route": "lease: 2s, fingerprint: {explain: true}"}

    def plant(self):
        assert self.node.order("order-1") == 201
        for _ in range(4):
            assert self.node.order("order-1", body=b'{"item":"book","sent_at":1}') == 409


class ClaimsSuspect(Situation):
    alerts = ("SemelClaimsSuspect",)

    def plant(self):
        self.node.hold("order-1")
        self.node.shell("redis-cli -u $REDIS del $(redis-cli -u $REDIS --scan --pattern 'semel:{*')")
        until(lambda: self.node.figure("semel_store_claims_suspect_total") > 0)


class ReloadRefused(Situation):
    alerts = ("SemelReloadRefused",)

    def plant(self):
        file = self.node.folder / "semel.yaml"
        file.write_text(file.read_text().replace("workers: 2", "worker: 2"))
        self.node.process.send_signal(signal.SIGHUP)
        until(lambda: self.node.figure("semel_reloads_refused_total") == 1)


class NodesDisagree(Situation):
    alerts = ("SemelNodesDisagree",)

    def plant(self):
        other = self.node.start_beside(self.changed)
        self.ends.callback(kill, other)
        until(lambda: self.node.figure("semel_namespace_conflicts") == 1)

    def changed(self, text):
        """Another caller, with the line by which the refusal accepts it."""
        text = text.replace("header:Authorization", "header:X-Account")
        file = self.node.folder / "changed.yaml"
        file.write_text(text)
        command = [runbooks.BINARY, "check", "--live", file]
        verdict = subprocess.run(command, capture_output=True, text=True, timeout=runbooks.PATIENCE)
        return text + re.search(r"allow_identity_change: [a-p]{10}", verdict.stderr)[0] + "\n"


class ChargedTwice(Situation):
    """A client sends a key again, with the token that it has got meanwhile."""

    manual = ("charged-twice.md",)

    def plant(self):
        for caller in ("Bearer old", "Bearer new"):
            assert self.node.order("order-1", "orders", caller, path="/v1", host="orders.example") == 201


class NodeDown(Situation):
    """A node that was restarted with a configuration that it refuses."""

    alerts = ("SemelNotScraped",)
    block = 0

    def plant(self):
        file = self.node.folder / "semel.yaml"
        file.write_text(file.read_text().replace("workers: 2", "worker: 2"))
        self.node.terminate()
        command = [runbooks.BINARY, "run", "--config", file]
        ended = subprocess.run(command, stdout=self.node.log, stderr=self.node.log, timeout=runbooks.PATIENCE)
        assert ended.returncode == 78, ended


class OtherToken(Situation):
    """A Prometheus that has another token than the node."""

    alerts = ("SemelNotScraped",)
    block = 1

    def begin(self):
        token = self.folder / "admin-token"
        for file in (token, self.folder / "prometheus-token"):
            file.write_text(40 * "1")
            file.chmod(0o600)
        self.start_node(admin=f'token_file: "{token}"')

    def plant(self):
        self.node.prometheus_token.write_text(40 * "2")


class StoreFailedOver(Situation):
    """A master that went, and whose replica has taken over."""

    alerts = ("SemelStoreFailedOver",)

    def begin(self):
        self.master = self.start_redis("master", "--repl-diskless-sync-delay", "0")
        self.replica = self.start_replica(self.master)
        self.sentinel = runbooks.Sentinel(self.folder / "sentinel", self.master)
        self.ends.callback(self.sentinel.stop)
        until(lambda: "num-slaves\n1\n" in self.sentinel.call("sentinel", "master", "orders"))
        nodes = f'nodes: ["127.0.0.1:{self.sentinel.port}"]'
        self.start_node(redis=self.master, store=f"topology: sentinel, {nodes}, master_name: orders")

    def plant(self):
        assert self.node.order("order-1") == 201
        self.master.stop()
        self.sentinel.looks_after(milliseconds=1000)
        until(lambda: self.node.figure("semel_store_failovers_total") == 1)
        until(lambda: "s_down,slave" in self.sentinel.call("sentinel", "replicas", "orders"))


class StoreRedirects(Situation):
    """A cluster of three masters, one of which went."""

    alerts = ("SemelStoreRedirects",)

    def begin(self):
        servers = []
        for number in range(3):
            bus = runbooks.unused_port()
            server = self.start_redis(
                f"redis{number}", "--cluster-enabled", "yes", "--cluster-port", str(bus), "--cluster-node-timeout", "2000")
            servers.append((server.port, bus, server))
        # In the order of the report on them.
        servers.sort()
        for number, (_, _, server) in enumerate(servers):
            server.call("cluster", "set-config-epoch", number + 1)
            server.call("cluster", "addslotsrange", number * 16384 // 3, (number + 1) * 16384 // 3 - 1)
        self.servers = [server for _, _, server in servers]
        for port, bus, _ in servers[1:]:
            self.servers[0].call("cluster", "meet", "127.0.0.1", port, bus)
        for server in self.servers:
            until(lambda: {"cluster_state:ok", "cluster_known_nodes:3"} <= set(server.call("cluster", "info").split()))
        nodes = f'nodes: ["127.0.0.1:{self.servers[0].port}"]'
        self.start_node(redis=self.servers[0], store=f"topology: cluster, {nodes}")

    def plant(self):
        self.servers[2].stop()
        for server in self.servers[:2]:
            until(lambda: " master,fail " in server.call("cluster", "nodes"))
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            # More than one in a second, if as many come in each minute.
            until(lambda: list(pool.map(self.node.order, map("order-{}".format, range(12)))) == [503] * 12
                  and self.node.figure('semel_store_redirects_total{kind="down"}') > 60)


class StoreWaits(Situation):
    """A replica that stands still from time to time."""

    alerts = ("SemelStoreWaits",)

    def begin(self):
        self.master = self.start_redis("master", "--repl-diskless-sync-delay", "0", "--min-replicas-to-write", "1")
        self.replica = self.start_replica(self.master)
        self.start_node(
            redis=self.master, store=f'url: "{self.master.url}", replicas: 1, timeout: 10s', route="lease: 30s")

    def plant(self):
        until(self.slow)
        self.replica.process.send_signal(signal.SIGSTOP)
        until(lambda: re.search(r"lag=([2-9]|\d\d)", self.master.call("info", "replication")))

    def slow(self):
        """Whether the node has waited for more than 100 ms, for a replica that stood still meanwhile."""
        self.replica.process.send_signal(signal.SIGSTOP)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            order = pool.submit(self.node.order, f"order-{self.node.responses}")
            until(lambda: order.done() or "blocked_clients:1" in self.master.call("info", "clients"))
            time.sleep(0.2)  # Longer than the alert's bound. Nothing happens that one could wait for.
            self.replica.process.send_signal(signal.SIGCONT)
            assert order.result() == 201
        metrics = self.node.metrics()
        return metrics["semel_store_wait_seconds_count"] > metrics['semel_store_wait_seconds_bucket{le="0.1"}']


class LogDrops(Situation):
    """A reader of the log that stood still until Semel had no more room for lines."""

    alerts = ("SemelLogDrops",)

    def plant(self):
        reading, writing = os.pipe()
        reader = subprocess.Popen(["cat"], stdin=reading, stdout=self.node.log)
        self.ends.callback(kill, reader)
        os.close(reading)
        self.node.log.close()
        self.node.log = os.fdopen(writing, "wb")
        self.node.restart()
        reader.send_signal(signal.SIGSTOP)
        assert self.node.order("order-1") == 201
        with socket.create_connection(("127.0.0.1", self.node.port)) as connection:
            until(lambda: self.replay(connection, 2000) and self.node.figure("semel_log_lines_dropped_total"))
        reader.send_signal(signal.SIGCONT)

    def replay(self, connection, count):
        """Sends an order so many times, and reads as many responses."""
        body, recorded = b'{"item":"book"}', b'{"order": 1}'
        head = f"POST /v1/orders/plain HTTP/1.1\r\nHost: 127.0.0.1:{self.node.port}\r\nContent-Type: application/json\r\n" \
               f"Idempotency-Key: order-1\r\nAuthorization: Bearer alice\r\nContent-Length: {len(body)}\r\n\r\n"
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            sent = pool.submit(connection.sendall, (head.encode() + body) * count)
            rest = b""
            while count > 0:
                received = connection.recv(1 << 20)
                assert received, "Semel closed the connection"
                rest = rest[1 - len(recorded):] + received
                count -= rest.count(recorded)
            sent.result()
        return True


def kill(process):
    process.kill()
    process.wait()


SITUATIONS = Situation.__subclasses__()
# The alerts whose situation is not planted: what a healthy node's counters would grow by in a minute, and its gauges
# be.
FIGURES = {"SemelTokenKeysOld": {"semel_jwks_age_seconds": 60, "semel_jwks_keys": 2}}


HAS_REDIS = shutil.which("redis-server") and shutil.which("faketime") or os.environ.get("SEMEL_TEST_ALL")
HAS_PROMTOOL = shutil.which("promtool") or os.environ.get("SEMEL_TEST_ALL")
RUNS = {}


def setUpModule():
    """The situations are beside each other and beside the other tests, since they mostly wait."""
    pool = concurrent.futures.ThreadPoolExecutor(len(SITUATIONS))
    unittest.addModuleCleanup(pool.shutdown)
    if HAS_REDIS:
        RUNS.update((kind, pool.submit(Commands("run_situation").run_situation, kind)) for kind in SITUATIONS)


@unittest.skipUnless(HAS_REDIS, "no redis-server or no faketime on this machine")
class Commands(unittest.TestCase):
    def run_situation(self, kind):
        """Plants it, and runs the commands. Returns the metrics before and in it."""
        with tempfile.TemporaryDirectory(prefix="semel-runbooks-") as folder, contextlib.ExitStack() as stack:
            situation = kind(pathlib.Path(folder))
            stack.enter_context(situation.ends)
            situation.begin()
            situation.plant()
            situation.await_count()
            pages = {**situation.node.before, **situation.otherwise}, situation.node.scrape()
            chapters = [[BOOKS[name][number] for number in numbers] for name, numbers in situation.blocks()]
            for blocks in chapters + [runbooks.manual_blocks(name) for name in situation.manual]:
                redis = situation.node.redis
                names = runbooks.Names(**({"6379": str(redis.port)} if redis else {}))
                for block in blocks:
                    for command, shown in block.steps:
                        self.run_command(situation, names, command, shown)
            return pages

    def run_command(self, situation, names, command, shown):
        for last in (False,) * 100 + (True,) if command.startswith("journalctl") else (True,):
            output, code = situation.node.shell(names.replaced(command))
            matches = code == 0 and names.match(shown.splitlines(), output.splitlines())
            if matches or last:
                break
            time.sleep(0.1)  # A line of the log is written after what it is about.
        self.assertEqual(code, 0, f"{command}\n{output}")
        self.assertTrue(matches, f"$ {command}\n{output}\nis not as the page shows it:\n{shown}")


def test_of(situation):
    def test(self):
        before, after = RUNS[situation].result()
        if situation.alerts and HAS_PROMTOOL:
            with tempfile.TemporaryDirectory() as folder:
                prometheus = runbooks.Prometheus(pathlib.Path(folder))
                self.assertEqual(prometheus.verdict(before, after, situation.alerts), "")
    return test


for each in SITUATIONS:
    setattr(Commands, "test_" + each.__name__.lower(), test_of(each))


class Page(unittest.TestCase):
    def test_each_alert_has_its_runbook_with_commands_and_no_other_is_there(self):
        self.assertEqual(list(BOOKS), list(RULES))
        for name, blocks in BOOKS.items():
            self.assertTrue(blocks, name)
        run = [(name, number) for situation in SITUATIONS for name, numbers in situation("").blocks() for number in numbers]
        self.assertEqual(sorted(run), sorted((name, n) for name, blocks in BOOKS.items() for n in range(len(blocks))))
        self.assertEqual(set(FIGURES), {c for situation in SITUATIONS for c in situation.chapters})

    def test_a_page_of_the_manual_that_is_run_has_all_its_commands_with_their_output(self):
        for name in (name for situation in SITUATIONS for name in situation.manual):
            languages = re.findall(r"^```(\w*)\n.*?^```$", (runbooks.MANUAL / name).read_text(), re.M | re.S)
            self.assertEqual(set(languages), {"console"}, name)
            self.assertTrue(all(block.steps for block in runbooks.manual_blocks(name)), name)

    def test_each_alert_links_its_runbook_which_says_how_urgent_it_is(self):
        for name, rule in RULES.items():
            page, anchor = rule["annotations"]["runbook_url"].split("#")
            file = (runbooks.ALERTS.parent / page).resolve()
            self.assertEqual((file, anchor), (runbooks.DEPLOY / "runbooks.md", name.lower()))
            self.assertIn(anchor, anchors(file))
            text = runbooks.PAGE.split(f"\n## {name}\n\n")[1]
            self.assertTrue(text.startswith(f"*{rule['labels']['severity'].title()}.*"), name)


@unittest.skipUnless(HAS_PROMTOOL and HAS_REDIS, "no promtool, redis-server or faketime on this machine")
class Alerts(unittest.TestCase):
    """The rules on the page of a node on Redis that has just started, where most series are absent."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        node = Node(cls.folder)
        cls.addClassCleanup(node.stop)
        until(lambda: OPEN % "unknown" in node.metrics())
        cls.start = node.metrics()
        cls.prometheus = runbooks.Prometheus(cls.folder)

    def test_none_fires_on_an_idle_node(self):
        self.assertEqual(self.prometheus.verdict(self.start, self.start, ()), "")

    def test_those_fire_whose_situation_is_not_planted(self):
        for alert, figures in FIGURES.items():
            with self.subTest(alert):
                counted = {name: self.start.get(name, 0) + figure if self.prometheus.COUNTS.match(name) else figure
                           for name, figure in figures.items()}
                self.assertEqual(self.prometheus.verdict(self.start, {**self.start, **counted}, [alert]), "")

    def test_a_counter_of_single_events_is_there_from_the_start(self):
        """A series that appears with its first count shows no increase. Other rules look at what goes on for minutes."""
        for name, rule in RULES.items():
            for family, labels in re.findall(r"increase\((semel_\w+_total)(\{[^}]*\})?\[", rule["expr"]):
                if re.search(r"> [1-9]\d*$", rule["expr"]) and labels:
                    continue  # It wants several counts, of which the first may be missed.
                series = [s for s in self.start if s.startswith(family) and labels.strip("{}") in s]
                self.assertTrue(series, f"{name}: {family}{labels} is not there from the start")


if __name__ == "__main__":
    unittest.main()
