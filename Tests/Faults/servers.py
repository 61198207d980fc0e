"""Servers of Redis that know each other: masters and replicas, and Sentinels."""

import os

import settings
from nodes import Process, free_port
from resp import Client, Refused


class Server(Process):
    """A server behind a relay whose port it announces, in a cluster or with Sentinels."""

    def __init__(self, name, directory, relay_port, is_cluster, replicas, clock):
        self.port = free_port()
        self.relay_port = relay_port
        self.bus_port = free_port() if is_cluster else None
        self.data = os.path.join(directory, name)
        os.makedirs(self.data)
        words = {
            "port": self.port,
            "bind": "127.0.0.1",
            "dir": self.data,
            "save": "",
            # A kill must lose nothing that was acknowledged, as the operator's manual asks of a store.
            "appendonly": "yes",
            "appendfsync": "always",
            "min-replicas-to-write": replicas,
            "min-replicas-max-lag": 2,
            "repl-diskless-sync-delay": 0,
            "repl-ping-replica-period": 1,
        }
        if is_cluster:
            words |= {
                "cluster-enabled": "yes",
                "cluster-node-timeout": int(settings.NODE_TIMEOUT * 1000),
                "cluster-port": self.bus_port,
                "cluster-announce-ip": "127.0.0.1",
                "cluster-announce-port": relay_port,
                "cluster-allow-replica-migration": "no",
                "cluster-require-full-coverage": "no",
            }
        else:
            words |= {"replica-announce-ip": "127.0.0.1", "replica-announce-port": relay_port}
        command = ["redis-server"] + [part for word, value in words.items() for part in (f"--{word}", str(value))]
        super().__init__(name, command, directory, clock.environment)
        self.client = Client(self.port)
        # The watch has a connection of its own, so that no long command is before it.
        self.watched = Client(self.port)

    async def is_up(self):
        try:
            return await self.client.call("PING") == "PONG"
        except (OSError, Refused):  # It may be reading its data.
            return False

    async def kill(self):
        await super().kill()
        self.client.close()
        self.watched.close()


class Sentinel(Process):
    def __init__(self, name, directory, master_port, quorum):
        self.port = free_port()
        place = os.path.join(directory, name)
        os.makedirs(place)
        path = os.path.join(place, "sentinel.conf")
        lines = [
            f"port {self.port}",
            "bind 127.0.0.1",
            f"dir {place}",
            f"sentinel monitor {settings.MASTER_NAME} 127.0.0.1 {master_port} {quorum}",
            f"sentinel down-after-milliseconds {settings.MASTER_NAME} {int(settings.NODE_TIMEOUT * 1000)}",
            f"sentinel failover-timeout {settings.MASTER_NAME} 3000",
        ]
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        super().__init__(name, ["redis-server", path, "--sentinel"], directory)
        self.client = Client(self.port)

    async def is_up(self):
        try:
            return await self.client.call("PING") == "PONG"
        except OSError:
            return False
