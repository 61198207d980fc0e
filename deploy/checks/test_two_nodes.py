"""deploy/two-nodes.md from its first line to its last: its files and commands, on addresses of this machine instead of
several machines. Run by deploy/test; SEMEL_BINARY names the binary."""

import os
import pathlib
import random
import re
import shutil
import subprocess
import tempfile
import unittest

import runbooks
from clients import BINARY, DEPLOY, PATIENCE, Backend
from runbooks import Block, Names, until

PAGE = (DEPLOY / "two-nodes.md").read_text()
# sudo without root: leaves out owners and modes, and does nothing for packages, groups and systemd. The files are put
# where the machine's are.
SUDO = """#!/bin/bash
case "$1" in
  install) shift; args=(); while [ $# -gt 0 ]; do case "$1" in -g|-m) shift;; -d) args+=(-d);; *) args+=("$1");; esac; shift; done
    exec install "${args[@]}";;
  tee|sed|semel) exec "$@";;
  apt-get|groupadd|systemctl) ;;
  *) echo "sudo: $1 is not known to the test" >&2; exit 1;;
esac
"""
NGINX = """daemon off; pid %(root)s/pid; error_log %(root)s/error.log;
events {}
http {
  access_log off; client_body_temp_path %(root)s/body; proxy_temp_path %(root)s/proxy;
  fastcgi_temp_path %(root)s/fastcgi; uwsgi_temp_path %(root)s/uwsgi; scgi_temp_path %(root)s/scgi;
  include %(root)s/etc/nginx/conf.d/*.conf;
}
"""
TOOLS = ("redis-server", "nginx", "openssl", "curl", "promtool")


def manual_block(name, language):
    """The first block of a language on a page of the manual."""
    return re.search(rf"^```{language}\n(.*?)^```$", (runbooks.MANUAL / name).read_text(), re.M | re.S)[1]


def chapters():
    """The page's chapters by number, each the list of its parts: ("sh" | "console" | "file", text, path)."""
    found = {}
    for number, text in re.findall(r"^## (\d)\. .*?\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S):
        parts = found[int(number)] = []
        for path, language, body in re.findall(r"(?:^`(/\S+)`:\n\n)?^```(\w*)\n(.*?)^```$", text, re.M | re.S):
            parts.append(("file" if path else language, body, path))
    return found


@unittest.skipUnless(all(map(shutil.which, TOOLS)) or os.environ.get("SEMEL_TEST_ALL"), f"needs {', '.join(TOOLS)}")
class TwoNodes(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="semel-two-nodes-")
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.backend = Backend()
        self.addCleanup(self.backend.stop)
        self.network = f"127.{random.randrange(1, 250)}.{random.randrange(1, 250)}."
        self.secure = str(runbooks.unused_port())
        self.names = Names()
        (self.folder / "bin").mkdir()
        (self.folder / "bin/sudo").write_text(SUDO)
        (self.folder / "bin/sudo").chmod(0o755)
        (self.folder / "bin/semel").symlink_to(BINARY)
        (self.folder / "work").mkdir()

    def here(self, text, machine):
        """The page's text with this machine's addresses and folders."""
        root = self.folder / machine
        text = text.replace("10.0.0.7:9000", f"127.0.0.1:{self.backend.server_port}")
        text = text.replace("10.0.0.", self.network).replace(r"10\.0\.0\.", self.network.replace(".", r"\."))
        text = text.replace(":443:", f":{self.secure}:").replace("api.example.com/v1", f"api.example.com:{self.secure}/v1")
        text = text.replace("listen 443", f"listen {self.network}5:{self.secure}").replace("/usr/share/doc/semel", str(DEPLOY))
        return re.sub(r"(?<![\w.])/(etc|var)/", rf"{root}/\1/", text)

    def shell(self, command, machine):
        environment = {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}"}
        ended = subprocess.run(
            ["bash", "-o", "pipefail", "-c", self.here(command, machine)], cwd=self.folder / "work", env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
        self.assertEqual(ended.returncode, 0, f"{command}\n{ended.stdout}")
        return ended.stdout.replace(f"{self.folder / machine}/", "/")

    def follow(self, chapter, machine, leave_out=lambda text: False):
        """Does what a chapter says on a machine."""
        for folder in ("etc/redis", "etc/semel", "etc/nginx/conf.d", "etc/systemd/system", "etc/prometheus", "var/lib/redis"):
            (self.folder / machine / folder).mkdir(parents=True, exist_ok=True)
        for kind, text, path in chapters()[chapter]:
            if kind == "file":
                (self.folder / machine / path.lstrip("/")).write_text(self.here(text, machine))
            elif kind == "console":
                for command, shown in Block(text).steps:
                    output = self.shell(command, machine)
                    self.assertTrue(
                        self.names.match(shown.splitlines(), output.splitlines()), f"$ {command}\n{output}\nis not:\n{shown}")
            elif not leave_out(text):
                self.shell(text, machine)

    def start(self, machine, *command):
        log = open(self.folder / machine / "log", "wb")
        process = subprocess.Popen([*map(str, command)], stdout=log, stderr=log)
        self.addCleanup(log.close)
        self.addCleanup(lambda: (process.kill(), process.wait()))
        return process

    def log(self, machine):
        return (self.folder / machine / "log").read_text()

    def is_ready(self, node):
        return subprocess.run(
            ["curl", "-sf", "-o", "/dev/null", f"http://{self.network}{node}:8081/readyz"]).returncode == 0

    def test_the_page_can_be_followed(self):
        self.follow(1, "home")
        self.follow(2, "redis")
        self.start("redis", "redis-server", self.folder / "redis/etc/redis/redis.conf")
        until(lambda: "Ready to accept connections" in self.log("redis"), "Redis does not start")
        nodes = {}
        for node in (1, 2):
            machine = f"node{node}"
            self.follow(3, machine, leave_out=lambda text: node == 1 and "sed" in text)
            nodes[node] = self.start(machine, BINARY, "run", "--config", self.folder / machine / "etc/semel/config.yaml")
        for node in nodes:
            until(lambda: self.is_ready(node) or nodes[node].poll() is not None)
            self.assertIsNone(nodes[node].poll(), self.log(f"node{node}"))
        self.follow(4, "nginx")
        nginx = self.folder / "nginx"
        (nginx / "etc/nginx/conf.d/semel.conf").write_text(self.here(manual_block("listeners-and-nginx.md", "nginx"), "nginx"))
        (nginx / "nginx.conf").write_text(NGINX % {"root": nginx})
        self.start("nginx", "nginx", "-p", nginx, "-c", nginx / "nginx.conf")
        until(lambda: (nginx / "pid").exists() and (nginx / "pid").read_text(), "nginx does not start")
        self.try_it(nodes)
        configuration = self.folder / "prometheus/etc/prometheus/prometheus.yml"
        configuration.parent.mkdir(parents=True)
        block = manual_block("metrics.md", "yaml")
        configuration.write_text(
            self.here(block.replace("/usr/share/doc/semel/monitoring/alerts.yaml", "/etc/prometheus/alerts.yaml"), "prometheus"))
        shutil.copy(DEPLOY / "monitoring/alerts.yaml", self.folder / "work")
        self.follow(6, "prometheus")

    def try_it(self, nodes):
        """Chapter 5: a node is stopped and started where the page does."""
        kinds = [kind for kind, _, _ in chapters()[5]]
        self.assertEqual(kinds, ["console", "sh", "console", "sh"])

        def stop_or_start(text):
            if "systemctl start semel" in text:
                nodes[1] = self.start("node1", BINARY, "run", "--config", self.folder / "node1/etc/semel/config.yaml")
                until(lambda: self.is_ready(1))
                return True
            self.assertIn("systemctl stop semel", text)
            nodes[1].terminate()
            self.assertEqual(nodes[1].wait(PATIENCE), 0)
            return True

        self.follow(5, "home", leave_out=stop_or_start)
        self.assertEqual(sum(self.backend.executed.values()), 2)


if __name__ == "__main__":
    unittest.main()
