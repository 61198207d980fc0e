"""The target of a load test: a deployment of yours by its URLs, or one on this machine that ends with the test."""

import argparse
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

from lib.resp import Redis

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent


TOPOLOGIES = ["standalone", "sentinel", "cluster"]
CLUSTER_MASTERS, SENTINELS, SLOTS = 3, 3, 16384


def free_port():
    """A port that nobody listens on, and that no client's connection gets before a server does."""
    while True:
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port := random.randrange(16000, 20000)))
            return port


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def arguments(description, **defaults):
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--url", action="append", default=[], help="a node of your deployment, http://HOST:PORT; without one, Semel, its store and a backend are started here")
    parser.add_argument("--count-url", help="of your backend: responds with JSON {\"executed\": N}")
    parser.add_argument("--admin-url", help="of your deployment's admin listener")
    parser.add_argument("--path", default="/v1/orders", help="a protected path that takes POST")
    parser.add_argument("--authorization", default="Bearer load-test", help="who asks")
    parser.add_argument("--binary", default=default_binary(), help="the semel that is started here")
    parser.add_argument("--store", choices=["embedded", "redis"], default="redis", help="of the one that is started here")
    parser.add_argument("--cache", help="local_cache of the one that is started here")
    parser.add_argument("--access-log", action="store_true", help="of the one that is started here")
    parser.add_argument("--topology", choices=TOPOLOGIES, default="standalone", help="of the Redis that is started here")
    parser.add_argument("--replicas", type=int, default=0, help="of each master that is started here, which Semel awaits (store.replicas)")
    parser.add_argument("--svg", help="where the picture goes")
    for name, (kind, value, text) in defaults.items():
        parser.add_argument("--" + name.replace("_", "-"), type=kind, default=value, help=text)
    return parser.parse_args()


def default_binary():
    named = os.environ.get("SEMEL_BINARY")
    found = [ROOT / ".build/release/semel", ROOT / ".build/debug/semel"]
    return named or next((str(path) for path in found if path.exists()), shutil.which("semel") or "semel")


def verdict(failures, what):
    """The last line, and the exit code: 0 good, 1 not."""
    for failure in failures:
        print(f"  FAILED: {failure}")
    print(("BAD: " if failures else "GOOD: ") + what)
    sys.exit(1 if failures else 0)


def address(url):
    parts = urllib.parse.urlparse(url)
    if parts.scheme != "http" or not parts.hostname:
        raise SystemExit(f"{url}: load tests speak plain http://HOST:PORT")
    return parts.hostname, parts.port or 80


class Rig:
    """Starts what is missing, and ends all that it started."""

    def __init__(self, options, nodes=1, workers=0, fast_backend=False, routes="", cache="64MiB"):
        self.options, self.processes, self.cache, self.redis, self.masters = options, [], options.cache or cache, None, []
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="semel-load-"))
        self.urls, self.admin, self.control, self.pids = list(options.url), options.admin_url, options.count_url, []
        self.is_local = not options.url
        try:
            if self.is_local:
                self._start(nodes, workers, fast_backend, routes)
        except BaseException:
            self.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    @property
    def targets(self):
        return [address(url) for url in self.urls]

    def spawn(self, *command, **more):
        with open(self.folder / "errors", "ab") as errors:
            process = subprocess.Popen(
                [str(word) for word in command], stdout=more.pop("stdout", subprocess.DEVNULL), stderr=errors, **more)
        self.processes.append(process)
        return process

    def wait(self, url, seconds=20):
        deadline = time.monotonic() + seconds
        while True:
            try:
                with urllib.request.urlopen(url, timeout=2):
                    return
            except urllib.error.HTTPError as error:
                if error.code < 500:
                    return
            except OSError:
                pass
            if time.monotonic() > deadline:
                raise SystemExit(f"{url} does not respond:\n" + (self.folder / "errors").read_text()[-2000:])
            time.sleep(0.05)

    def start_redis(self, *more):
        port = free_port()
        folder = self.folder / f"redis-{port}"
        folder.mkdir()
        self.spawn("redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", folder, "--appendonly", "yes", "--save", "", *more)
        self.await_redis("to reply", lambda: listens(port))
        return port

    def await_redis(self, what, holds, seconds=30):
        deadline = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > deadline:
                raise SystemExit(f"redis-server takes too long {what}")
            time.sleep(0.05)

    def start_store(self, topology="standalone", replicas=0):
        """Starts the servers of a topology; the ports of its masters, and the store's settings."""
        if topology == "cluster":
            masters = self.start_cluster(replicas)
            nodes = ", ".join(f'"127.0.0.1:{port}"' for port in masters)
            place = f"topology: cluster, nodes: [{nodes}]"
        else:
            masters = [self.start_redis()]
            for _ in range(replicas):
                self.start_redis("--replicaof", "127.0.0.1", masters[0])
            place = f'url: "redis://127.0.0.1:{masters[0]}/0"'
            if topology == "sentinel":
                nodes = ", ".join(f'"127.0.0.1:{self.start_sentinel(masters[0])}"' for _ in range(SENTINELS))
                place = f"topology: sentinel, master_name: orders, nodes: [{nodes}]"
        for port in masters:
            self.await_redis("to have its replicas", lambda: Redis(port).figures("replication")["connected_slaves"] == replicas)
        return masters, f"{place}, replicas: {replicas}"

    def start_sentinel(self, master):
        port = free_port()
        folder = self.folder / f"sentinel-{port}"
        folder.mkdir()
        (folder / "sentinel.conf").write_text(f"port {port}\nbind 127.0.0.1\ndir {folder}\nsentinel monitor orders 127.0.0.1 {master} 2\n")
        self.spawn("redis-server", folder / "sentinel.conf", "--sentinel")
        self.await_redis("to reply", lambda: listens(port))
        return port

    def start_cluster(self, replicas):
        nodes = []
        for _ in range(CLUSTER_MASTERS * (1 + replicas)):
            bus = free_port()
            nodes.append((self.start_redis("--cluster-enabled", "yes", "--cluster-port", bus), bus))
        masters = [port for port, _ in nodes[:CLUSTER_MASTERS]]
        links = [Redis(port) for port, _ in nodes]
        for index, link in enumerate(links[:CLUSTER_MASTERS]):
            link.command("CLUSTER", "SET-CONFIG-EPOCH", index + 1)
            first, end = (SLOTS * at // CLUSTER_MASTERS for at in (index, index + 1))
            link.command("CLUSTER", "ADDSLOTSRANGE", first, end - 1)
        for port, bus in nodes[1:]:
            links[0].command("CLUSTER", "MEET", "127.0.0.1", port, bus)
        for link in links:
            self.await_redis("to meet", lambda: f"cluster_known_nodes:{len(nodes)}\r".encode() in link.command("CLUSTER", "INFO"))
        for index, link in enumerate(links[CLUSTER_MASTERS:]):
            link.command("CLUSTER", "REPLICATE", links[index % CLUSTER_MASTERS].command("CLUSTER", "MYID"))
        for link in links:
            self.await_redis("to form a cluster", lambda: b"cluster_state:ok" in link.command("CLUSTER", "INFO"))
        return masters

    def certificate(self):
        """One for localhost, signed by itself, and its key."""
        files = self.folder / "backend.pem", self.folder / "backend.key"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost",
             "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
        return files

    def start_secure_backend(self, certificate, key):
        port = free_port()
        self.spawn_nginx(port, f"""ssl_certificate {certificate}; ssl_certificate_key {key};
          location / {{ default_type application/json; return 201 '{{"order":1}}\\n'; }}""", tls=True)
        return port

    def start_backend(self, fast=False):
        port = free_port()
        if fast and shutil.which("nginx"):
            self.spawn_nginx(port, "location / { default_type application/json; return 201 '{\"order\":1}\\n'; }")
            return port
        control = free_port()
        self.control = f"http://127.0.0.1:{control}/count"
        process = self.spawn(sys.executable, HERE / "backend.py", port, control, stdout=subprocess.PIPE)
        process.stdout.readline()
        return port

    def spawn_nginx(self, port, location, http="", modules="", tls=False):
        folder = self.folder / f"nginx-{port}"
        folder.mkdir()
        (folder / "nginx.conf").write_text(f"""
{modules}
worker_processes 1;
daemon off;
pid {folder}/pid;
error_log {folder}/error.log warn;
events {{ worker_connections 4096; }}
http {{
  access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  keepalive_requests 1000000000;
  {http}
  server {{ listen 127.0.0.1:{port}{" ssl" if tls else ""} backlog=4096; {location} }}
}}
""")
        return self.spawn(shutil.which("nginx") or "/usr/sbin/nginx", "-p", folder, "-c", folder / "nginx.conf")

    def start_semel(self, backend, redis, workers=0, routes="", authority=None, place=None):
        """Starts Semel on the Redis at a port or at a place (`start_store`), and on the embedded store without either."""
        url = f'"https://localhost:{backend}", tls: {{ca: "{authority}"}}' if authority else f'"http://127.0.0.1:{backend}"'
        port, admin = free_port(), free_port()
        if redis:
            place = f'url: "redis://127.0.0.1:{redis}/0"'
        store = f"kind: redis, {place}, local_cache: {self.cache}" if place else f'kind: embedded, path: "{self.folder}/{port}.db"'
        log = "level: info, access: true" if self.options.access_log else "level: warning, access: false"
        config = self.folder / f"semel-{port}.yaml"
        config.write_text(f"""
listen: [{{address: "127.0.0.1:{port}"}}]
admin: {{address: "127.0.0.1:{admin}"}}
workers: {workers}
log: {{{log}}}
limits: {{max_in_flight: 100000, caller_in_flight: 0, max_connections: 100000}}
upstreams: {{backend: {{url: {url}, max_connections: 256}}}}
store: {{{store}}}
routes:
  - {{name: orders, match: {{methods: [POST], path: "/v1/**"}}, caller: {{parts: ["header:Authorization"]}}, max_waiters: 10000 {routes}}}
""")
        process = self.spawn(self.options.binary, "run", "--config", config)
        self.wait(f"http://127.0.0.1:{admin}/readyz")
        self.urls.append(f"http://127.0.0.1:{port}")
        self.admin = self.admin or f"http://127.0.0.1:{admin}"
        self.pids.append(process.pid)
        return process

    def start_again(self, process):
        """Starts a Semel again that has ended, at the same addresses."""
        again = self.spawn(*process.args)
        self.wait(self.admin + "/readyz")
        self.pids[self.pids.index(process.pid)] = again.pid
        return again

    def _start(self, nodes, workers, fast_backend, routes):
        backend = self.start_backend(fast_backend)
        place = None
        if self.options.store == "redis" or nodes > 1:
            self.masters, place = self.start_store(self.options.topology, self.options.replicas)
            self.redis = self.masters[0]
        for _ in range(nodes):
            self.start_semel(backend, None, workers, routes, place=place)

    def count(self):
        with urllib.request.urlopen(self.control, timeout=10) as response:
            return json.load(response)

    def command_backend(self, word):
        request = urllib.request.Request(self.control.rsplit("/", 1)[0] + "/" + word, method="POST", data=b"")
        urllib.request.urlopen(request, timeout=10).close()

    def metric(self, name):
        """A figure of the metrics page, all its samples added up; None where there is no admin listener."""
        if not self.admin:
            return None
        with urllib.request.urlopen(self.admin + "/metrics", timeout=10) as page:
            lines = page.read().decode().splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.split("{")[0].split(" ")[0] == name)

    def stop(self):
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def cpu_seconds(pid):
    """The CPU time that a process and its children have used."""
    total = 0
    for task in [pid] + children(pid):
        fields = pathlib.Path(f"/proc/{task}/stat").read_text().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def children(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
