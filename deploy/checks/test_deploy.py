"""The checks of deploy/ that need no Docker, Helm or Kubernetes. Run by deploy/test; SEMEL_BINARY names the binary."""

import json
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
import urllib.request

import yaml
from prometheus_client.parser import text_string_to_metric_families

import chart
import confined
from binary import BINARY, DEPLOY, check_configuration
from clients import PATIENCE, unused_port


def answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def is_ready(admin):
    health = [BINARY, "health", "--admin", f"http://127.0.0.1:{admin}"]
    return subprocess.run(health, capture_output=True).returncode == 0


def page(admin):
    """The metrics page."""
    with urllib.request.urlopen(f"http://127.0.0.1:{admin}/metrics") as response:
        return response.read()


def wait_for(holds, semel):
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline and semel.poll() is None, f"semel does not become ready: {semel.poll()}"
        time.sleep(0.05)


class Image(unittest.TestCase):
    dockerfile = (DEPLOY / "Dockerfile").read_text()

    def stages(self):
        return re.split(r"^(?=FROM )", self.dockerfile, flags=re.M)[1:]

    def test_the_run_stage_has_every_library_that_the_binary_names(self):
        run_stage = self.stages()[-1]
        installed = set(re.findall(r"[\w.+-]+", re.search(r"install -y --no-install-recommends (.*)", run_stage)[1]))
        # Every Debian has these; a release binary has Swift's own runtime in it.
        installed |= {"libc6", "libgcc-s1"}
        dynamic = subprocess.run(["readelf", "-d", BINARY], capture_output=True, text=True, check=True).stdout
        runtime = re.compile(r"lib(swift|Foundation|_Foundation|dispatch|BlocksRuntime|XCTest|Testing)")
        for library in re.findall(r"NEEDED.*\[(.*)\]", dynamic):
            if library.startswith("ld-linux") or "/debug/" in str(BINARY) and runtime.match(library):
                continue
            paths = subprocess.run(["dpkg", "-S", f"*/{library}"], capture_output=True, text=True).stdout
            packages = {line.split(":")[0] for line in paths.splitlines()}
            self.assertTrue(packages & installed, f"{library} comes from {packages}, the image has {installed}")

    def test_it_keeps_the_rules_of_the_trade(self):
        build, run = self.stages()
        for stage in (build, run):
            base = re.match(r"FROM \$(\w+)", stage)[1]
            self.assertRegex(
                self.dockerfile, rf"(?m)^ARG {base}=[\w./-]+:[\w.-]+@sha256:[0-9a-f]{{64}}$", "an image without its digest")
            self.assertNotRegex(stage, r":latest|\bADD\b|\bsudo\b|curl .*\| *sh")
            if "apt-get" in stage:
                self.assertIn("--no-install-recommends", stage)
                self.assertIn("rm -rf /var/lib/apt/lists/*", stage)
        self.assertRegex(run, r"(?m)^USER (?!0)\d+:\d+$", "root, or a name that Kubernetes cannot judge")
        for word in ("ENTRYPOINT", "CMD"):
            self.assertRegex(run, rf"(?m)^{word} \[", "the shell form takes SIGTERM for itself")
        for source in re.findall(r"(?m)^COPY (?!--)(.*) \S+$", self.dockerfile):
            for name in source.split():
                self.assertTrue(list(DEPLOY.parent.glob(name)), name)
        self.assertIn("!Sources", (DEPLOY.parent / ".dockerignore").read_text())

    def test_its_health_check_is_a_command_of_its_binary(self):
        run = self.stages()[-1]
        timeout, command = re.search(r"(?m)^HEALTHCHECK .*--timeout=(\d+)s .*CMD (\[.*\])$", run).groups()
        path, *arguments = json.loads(command)
        self.assertEqual([path], json.loads(re.search(r"(?m)^ENTRYPOINT (\[.*\])$", run)[1]))
        self.assertRegex(run, rf"(?m)^COPY --from=build \S+ {path}$")
        self.assertGreater(int(timeout), 2, "the command itself waits for two seconds")
        help = subprocess.run([BINARY, *arguments, "--help"], capture_output=True, text=True)
        self.assertEqual(help.returncode, 0, help.stderr)
        self.assertIn(f"semel {arguments[0]} ", help.stdout)

    def test_compose_names_images_that_have_a_version_or_are_built(self):
        base = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
        for file in (None, "sentinel", "cluster"):
            added = yaml.safe_load((DEPLOY / f"compose/{file}.yaml").read_text())["services"] if file else {}
            services = chart.merged(base, added)
            built = {service["image"]: service["build"] for service in services.values() if "build" in service}
            for build in built.values():
                self.assertTrue((DEPLOY / build["context"] / build["dockerfile"]).is_file(), build)
            for name, service in services.items():
                if service["image"] not in built:
                    self.assertRegex(service["image"], r"^[\w./-]+:(?!latest$)[\w.-]+$", name)

    def test_compose_names_what_there_is(self):
        compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
        services = compose["services"]
        redis = services["redis"]["command"]
        self.assertEqual(redis[redis.index("--appendonly") + 1], "yes")
        self.assertEqual(redis[redis.index("--maxmemory-policy") + 1], "noeviction")
        for service in services.values():
            for volume in service.get("volumes", []):
                source = volume.split(":")[0]
                self.assertTrue(source in compose["volumes"] or (DEPLOY / source).exists(), volume)
            for other in service.get("depends_on", {}):
                self.assertIn(other, services)
        text = (DEPLOY / "compose/semel.yaml").read_text()
        check_configuration(self, text)
        for host in re.findall(r"(?:http|redis)://([a-z]+)", text):
            self.assertIn(host, services)

    def test_compose_waits_longer_than_a_stop_takes(self):
        service = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["semel"]
        for file in ("semel", "semel-sentinel", "semel-cluster"):
            settings = yaml.safe_load((DEPLOY / f"compose/{file}.yaml").read_text())
            stop = sum(int(settings[name].removesuffix("s")) for name in ("drain_delay", "shutdown_grace"))
            # Marks, spans and the log may take 11 s more.
            self.assertGreaterEqual(int(service["stop_grace_period"].removesuffix("s")), stop + 12, file)

    def test_compose_with_sentinel_and_cluster(self):
        base = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
        for topology, count in (("sentinel", 3), ("cluster", 6)):
            added = yaml.safe_load((DEPLOY / f"compose/{topology}.yaml").read_text())
            services = chart.merged(base["services"], added["services"])
            volumes = base["volumes"].keys() | added["volumes"].keys()
            servers = [s["command"] for name, s in services.items() if name.startswith("redis")]
            self.assertEqual(len(servers), count)
            for command in servers:
                for option, value in (
                        ("--appendonly", "yes"), ("--maxmemory-policy", "noeviction"), ("--min-replicas-to-write", "1")):
                    self.assertEqual(command[command.index(option) + 1], value)
            for service in services.values():
                for volume in service.get("volumes", []):
                    source = volume.split(":")[0]
                    self.assertTrue(source in volumes or (DEPLOY / source).exists(), volume)
                self.assertLessEqual(set(service.get("depends_on", {})), set(services))
            text = (DEPLOY / f"compose/semel-{topology}.yaml").read_text()
            check_configuration(self, text)
            store = yaml.safe_load(text)["store"]
            self.assertEqual(store["topology"], topology)
            self.assertLessEqual({node.split(":")[0] for node in store["nodes"]}, set(services))


@unittest.skipUnless(shutil.which("systemd-analyze"), "no systemd-analyze on this machine")
class Unit(unittest.TestCase):
    def test_systemd_takes_it(self):
        with tempfile.TemporaryDirectory() as folder:
            text = (DEPLOY / "systemd/semel.service").read_text().replace("/usr/local/bin/semel", BINARY)
            unit = pathlib.Path(folder) / "semel.service"
            unit.write_text(text)
            self.assertEqual(self.faults(unit), [])
            security = subprocess.run(
                ["systemd-analyze", "security", "--offline=true", "--threshold=25", "--no-pager", str(unit)],
                capture_output=True, text=True)
            self.assertEqual(security.returncode, 0, security.stdout + security.stderr)

    def test_the_drop_in_for_credentials_fits_the_unit_and_the_configuration(self):
        path, drop_in, configuration = re.search(
            r"```ini\n# /etc/systemd/system/(semel\.service\.d/\w+\.conf)\n(.*?)```\n\n```yaml\n(.*?)```",
            (DEPLOY / "manual/secrets.md").read_text(), re.S).groups()
        names = re.findall(r"(?m)^LoadCredential=([\w-]+):/etc/semel/\1$", drop_in)
        self.assertEqual(sorted(names), ["admin-token", "redis-password"])
        place = "/run/credentials/semel.service/"
        self.assertEqual(sorted(re.findall(rf"{place}([\w-]+)", configuration)), sorted(names))
        check_configuration(
            self, 'upstreams: {orders: {url: "http://127.0.0.1:9"}}\n' + configuration.replace(place, "/run/secrets/semel/"))
        with tempfile.TemporaryDirectory() as folder:
            unit = pathlib.Path(folder) / "semel.service"
            unit.write_text((DEPLOY / "systemd/semel.service").read_text().replace("/usr/local/bin/semel", BINARY))
            file = pathlib.Path(folder) / path
            file.parent.mkdir()
            file.write_text(drop_in)
            self.assertEqual(self.faults(unit), [])
            # The drop-in is read at all.
            file.write_text(drop_in.replace("LoadCredential=", "LoadCredentials="))
            self.assertEqual(len(self.faults(unit)), len(names))

    def faults(self, unit):
        """What systemd says against a unit and its drop-ins."""
        result = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True)
        return [line for line in result.stderr.splitlines() if "semel.service" in line]

    def test_semel_runs_under_its_system_call_filter(self):
        try:
            calls = confined.Filter((DEPLOY / "systemd/semel.service").read_text())
        except OSError as missing:
            self.skipTest(f"no libseccomp: {missing}")
        # Root would be asked for more: SQLite gives its files to the database's owner.
        nobody = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        within = {**nobody, "preexec_fn": calls.load}
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o777)
            binary = shutil.copy(BINARY, folder)
            try:
                subprocess.run([binary, "--version"], **nobody, check=True, capture_output=True)
            except (OSError, subprocess.CalledProcessError):
                self.skipTest("Swift's runtime is in a folder that is not everybody's")
            # The filter is in force: taskset asks for one of @resources.
            try:
                refused = subprocess.run(["taskset", "1", "true"], **within).returncode
            except subprocess.SubprocessError as fault:
                self.skipTest(f"this system takes no filter: {fault}")
            self.assertEqual(refused, -signal.SIGSYS)

            port, admin, backend = unused_port(), unused_port(), unused_port()
            config = pathlib.Path(folder) / "config.yaml"
            config.write_text(f"""
listen: [{{address: "127.0.0.1:{port}"}}, {{address: "unix:{folder}/semel.sock"}}]
admin: {{address: "127.0.0.1:{admin}"}}
upstreams: {{backend: {{url: "http://localhost:{backend}"}}}}
store: {{kind: embedded, path: "{folder}/semel.db"}}
routes: [{{name: orders, match: {{path: "/v1/**"}}, caller: {{parts: ["header:Authorization"]}}}}]
""")
            check = subprocess.run([binary, "check", config], **within, capture_output=True, text=True)
            self.assertEqual(check.returncode, 0, check.stdout + check.stderr)
            commands = (["demo", "--only-backend", "--backend-port", str(backend)], ["run", "--config", config])
            running = [subprocess.Popen([binary, *c], **within, stdout=subprocess.DEVNULL) for c in commands]
            try:
                self.use_confined(running[1], port, admin, backend)
            finally:
                for process in running:
                    process.kill()
                    process.wait()

    def use_confined(self, semel, port, admin, backend):
        """Sends a small body and one that has a thread of lower priority, reloads and stops."""
        wait_for(lambda: answers(backend), semel)
        wait_for(lambda: is_ready(admin), semel)
        for number, size in enumerate((1, 300_000)):
            for outcome in ("executed", "replayed"):
                request = urllib.request.Request(
                    f"http://127.0.0.1:{port}/v1/orders", json.dumps({"item": "a" * size}).encode(),
                    {"Authorization": "a", "Idempotency-Key": f"k{number}", "Content-Type": "application/json"})
                with urllib.request.urlopen(request) as response:
                    self.assertEqual((response.status, response.headers["Idempotency-Status"]), (201, outcome))
        semel.send_signal(signal.SIGHUP)
        wait_for(lambda: b"semel_reloads_total 1\n" in page(admin), semel)
        semel.send_signal(signal.SIGTERM)
        self.assertEqual(semel.wait(60), 0)

    def test_it_waits_longer_than_a_stop_takes(self):
        unit = (DEPLOY / "systemd/semel.service").read_text()
        # The defaults of drain_delay and shutdown_grace; marks, spans and the log may take 11 s more.
        self.assertGreaterEqual(int(re.search(r"TimeoutStopSec=(\d+)", unit)[1]), 0 + 35 + 12)


class Monitoring(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        labels = (DEPLOY.parent / "Sources/Telemetry/Metrics/MetricLabel.swift").read_text()
        cls.label_values = {}
        for key, values in re.findall(r'let key = "(\w+)"\s+public static let values = \[(.*?)\]', labels, re.S):
            cls.label_values.setdefault(key, set()).update(re.findall(r'"(\w+)"', values))
        cls.folder = tempfile.TemporaryDirectory()
        port, admin, backend = unused_port(), unused_port(), unused_port()
        # The key of RFC 7517, appendix A.1.
        key = {"kty": "EC", "crv": "P-256", "alg": "ES256", "kid": "1",
               "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}
        (pathlib.Path(cls.folder.name) / "keys.json").write_text(json.dumps({"keys": [key]}))
        config = pathlib.Path(cls.folder.name) / "semel.yaml"
        config.write_text(f"""
listen: [{{address: "127.0.0.1:{port}"}}]
admin: {{address: "127.0.0.1:{admin}"}}
upstreams: {{backend: {{url: "http://127.0.0.1:{backend}"}}}}
store: {{kind: embedded, path: "{cls.folder.name}/semel.db"}}
jwt: {{jwks_file: "{cls.folder.name}/keys.json"}}
routes: [{{name: orders, match: {{path: "/v1/**"}}, caller: {{parts: ["jwt:sub"]}}}}]
""")
        cls.semel = subprocess.Popen([BINARY, "run", "--config", str(config)], stdout=subprocess.DEVNULL)
        wait_for(lambda: is_ready(admin), cls.semel)
        cls.families = {f.name: f for f in text_string_to_metric_families(page(admin).decode())}

    @classmethod
    def tearDownClass(cls):
        cls.semel.terminate()
        cls.semel.wait(20)
        cls.folder.cleanup()

    def check(self, expression):
        """Every name is on the live page, with the kind that its use asks for, and label values are real."""
        names = re.findall(r"\bsemel_\w+", expression)
        self.assertTrue(names, expression)
        for name in names:
            histogram = re.sub(r"_(bucket|sum|count)$", "", name)
            counter = re.sub(r"_total$", "", name)
            if histogram != name:
                self.assertEqual(self.families[histogram].type, "histogram", expression)
            elif counter != name:
                self.assertEqual(self.families[counter].type, "counter", expression)
            else:
                self.assertEqual(self.families[name].type, "gauge", expression)
        for name, labels in re.findall(r"\bsemel_(\w+)\{([^}]*)\}", expression):
            for label, value in re.findall(r'(\w+)="(\w+)"', labels):
                family = self.families.get("semel_" + re.sub(r"_(total|bucket|sum|count)$", "", name))
                # Of most values there is no series before something was counted.
                known = {s.labels.get(label) for s in family.samples} | self.label_values.get(label, set())
                self.assertIn(value, known, expression)
        self.assertEqual(expression.count("("), expression.count(")"), expression)

    def test_alerts(self):
        rules = [r for g in yaml.safe_load((DEPLOY / "monitoring/alerts.yaml").read_text())["groups"] for r in g["rules"]]
        self.assertGreater(len(rules), 5)
        for rule in rules:
            self.check(rule["expr"])
            self.assertTrue(rule["annotations"]["summary"] and rule["labels"]["severity"])

    def test_board(self):
        board = json.loads((DEPLOY / "monitoring/board.json").read_text())
        self.assertGreater(len(board["panels"]), 10)
        self.assertEqual(len({p["id"] for p in board["panels"]}), len(board["panels"]))
        variables = [variable["name"] for variable in board["templating"]["list"]]
        self.assertEqual(variables, ["datasource", "instance", "route"])
        for panel in board["panels"]:
            for target in panel["targets"]:
                self.check(target["expr"])
                # A reader who suspects one node sees it alone on every panel.
                for selector in re.findall(r"\bsemel_\w+(\{[^}]*\})?", target["expr"]):
                    self.assertIn('instance=~"$instance"', selector, target["expr"])

    @unittest.skipUnless(shutil.which("promtool"), "no promtool on this machine")
    def test_promtool_takes_the_alerts(self):
        subprocess.run(["promtool", "check", "rules", str(DEPLOY / "monitoring/alerts.yaml")], check=True)


if __name__ == "__main__":
    unittest.main()
