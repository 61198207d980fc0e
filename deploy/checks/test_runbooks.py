"""The commands of deploy/runbooks.md and of a chapter of the manual, run in the situations that they are for, and the alerts
that lead to the runbooks. Run by deploy/test; SEMEL_BINARY names the binary."""

import concurrent.futures
import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import tempfile
import time
import unittest

import runbooks
from runbooks import Node, until

BOOKS, RULES = runbooks.runbooks(), runbooks.rules()
OPEN = 'semel_open_records{state="%s"}'


class Situation:
    """A node in trouble, the alerts that this sets off, and the chapters for those who are called."""

    alerts = ()  # those that its metrics set off; their chapters are run in this order
    chapters = ()  # others that are run there
    manual = ()  # chapters of the manual that are run there
    options = {}
    otherwise = {}  # what its metrics are in other times, if it begins with the node

    def __init__(self, folder):
        self.node = Node(folder, **self.options)

    def plant(self):
        pass

    def lose_store(self):
        # A claim on a connection that is just being made would get no reply, and its request would not run.
        until(lambda: self.node.responds("/readyz"))
        self.node.redis.stop()
        until(lambda: self.node.figure("semel_store_connections_up") == 0)

    def await_count(self):
        """A request is counted when its response has been written, which its reader may outrun."""
        until(lambda: self.node.figure("semel_requests_total") >= self.node.responses)

    def end(self):
        self.node.stop()


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
    options = {"route": "on_store_failure: open"}

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


class TokenKeys(Situation):
    alerts = ("SemelTokenKeysMissing",)
    chapters = ("SemelTokenKeysOld",)
    otherwise = {"semel_jwks_keys": 1}

    def __init__(self, folder):
        url = f"http://127.0.0.1:{runbooks.unused_port()}/keys"
        self.node = Node(folder, top=f"jwt: {{jwks_url: '{url}', issuer: me, audience: orders}}")


class StoreSlow(Situation):
    alerts = ("SemelStoreSlow",)

    def plant(self):
        for number in range(3):
            self.node.shell("redis-cli -u $REDIS client pause 200")
            assert self.node.order(f"order-{number}") == 201


class ExpiryHeld(Situation):
    alerts = ("SemelExpiryHeld",)
    options = {"redis": None}

    def plant(self):
        assert self.node.order("order-1") == 201
        self.node.restart("faketime", "-f", "+2d")


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

    def __init__(self, folder):
        super().__init__(folder)
        self.uploads = []

    def plant(self):
        head = "POST /v1/orders/plain HTTP/1.1\r\nHost: orders\r\nIdempotency-Key: order-%d\r\nAuthorization: Bearer alice\r\n" \
               "Content-Length: 1048576\r\n\r\n"
        for number in range(6):
            self.uploads.append(socket.create_connection(("127.0.0.1", self.node.port)))
            self.uploads[-1].sendall((head % number).encode() + bytes(1040000))
        until(lambda: self.node.figure("semel_body_bytes") > 6 * 1040000 - 6 * 4096)
        assert self.node.order("order-7", body=bytes(80000)) == 503
        until(lambda: self.node.figure("semel_open_connections") == 6)

    def end(self):
        for upload in self.uploads:
            upload.close()
        super().end()


class Mismatches(Situation):
    alerts = ("SemelMismatches",)
    options = {"route": "fingerprint: {explain: true}"}

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
        self.other = self.node.start_beside(
            lambda text: text.replace("header:Authorization", "header:X-Account") + "allow_identity_change: true\n")
        until(lambda: self.node.figure("semel_namespace_conflicts") == 1)

    def end(self):
        self.other.kill()
        self.other.wait()
        super().end()


class ChargedTwice(Situation):
    """A client sends a key again, with the token that it has got meanwhile."""

    manual = ("A customer says that they were charged twice",)

    def plant(self):
        for caller in ("Bearer old", "Bearer new"):
            assert self.node.order("order-1", "orders", caller, path="/v1", host="orders.example") == 201


class Healthy(Situation):
    """What needs a cluster, a failover, replicas or a full pipe is looked at on a node that has nothing."""

    chapters = ("SemelNotScraped", "SemelStoreFailedOver", "SemelStoreRedirects", "SemelStoreWaits", "SemelLogDrops")

    def plant(self):
        for number in range(3):
            assert self.node.order(f"order-{number}") == 201


SITUATIONS = Situation.__subclasses__()
# The alerts whose situation is not planted: what a healthy node's counters would grow by in a minute, and its gauges be.
FIGURES = {
    "SemelStoreFailedOver": {"semel_store_failovers_total": 1},
    "SemelStoreRedirects": {'semel_store_redirects_total{kind="loading"}': 100},
    "SemelStoreWaits": {f'semel_store_wait_seconds_bucket{{le="{le}"}}': count
                        for le, count in {"0.1": 90, "0.25": 100, "+Inf": 100}.items()},
    "SemelLogDrops": {"semel_log_lines_dropped_total": 1},
    "SemelNotScraped": {"up": 0},
    "SemelTokenKeysOld": {"semel_jwks_age_seconds": 60, "semel_jwks_keys": 2},
}


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
            stack.callback(situation.end)
            situation.plant()
            situation.await_count()
            pages = {**situation.node.before, **situation.otherwise}, situation.node.metrics()
            chapters = [BOOKS[name] for name in situation.alerts + situation.chapters]
            for blocks in chapters + [runbooks.manual_blocks(heading) for heading in situation.manual]:
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
        run = [chapter for situation in SITUATIONS for chapter in situation.alerts + situation.chapters]
        self.assertEqual(sorted(run), sorted(BOOKS))
        self.assertEqual(set(FIGURES), {c for situation in SITUATIONS for c in situation.chapters})

    def test_a_chapter_of_the_manual_that_is_run_has_all_its_commands_with_their_output(self):
        for heading in (heading for situation in SITUATIONS for heading in situation.manual):
            [chapter] = runbooks.MANUAL.split(f"\n## {heading}\n")[1:]
            languages = re.findall(r"^```(\w*)\n.*?^```$", chapter.split("\n## ")[0], re.M | re.S)
            self.assertEqual(set(languages), {"console"}, heading)
            self.assertTrue(all(block.steps for block in runbooks.manual_blocks(heading)), heading)

    def test_each_alert_links_its_runbook_which_says_how_urgent_it_is(self):
        for name, rule in RULES.items():
            page, anchor = rule["annotations"]["runbook_url"].split("#")
            file = (runbooks.ALERTS.parent / page).resolve()
            self.assertEqual((file, anchor), (runbooks.DEPLOY / "runbooks.md", name.lower()))
            self.assertIn(anchor, runbooks.anchors(file))
            text = runbooks.PAGE.split(f"\n## {name}\n\n")[1]
            self.assertTrue(text.startswith(f"*{rule['labels']['severity'].title()}.*"), name)

    def test_links_lead_somewhere(self):
        for page in ("runbooks.md", "README.md"):
            text = (runbooks.DEPLOY / page).read_text()
            for target, anchor in re.findall(r"\]\(([\w./-]*)#([\w-]+)\)", text):
                other = (runbooks.DEPLOY / (target or page)).resolve()
                self.assertIn(anchor, runbooks.anchors(other), f"{page}: {target}")


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
