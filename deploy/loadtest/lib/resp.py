"""A connection to Redis that sends commands in batches, and reads a server's figures."""

import re
import socket


def written(*words):
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)


class RedisError(Exception):
    """An error in the place of a reply."""


class Redis:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.file = self.socket.makefile("rb")

    def close(self):
        self.file.close()
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def reply(self):
        head = self.file.readline()
        if head[:1] == b"-":
            raise RedisError(head[1:].decode().strip())
        if head[:1] == b":":
            return int(head[1:])
        if head[:1] == b"$":
            return self.file.read(int(head[1:]) + 2)[:-2] if head[1:2] != b"-" else None
        if head[:1] == b"*":
            return [self.reply() for _ in range(int(head[1:]))]
        return head[1:].strip()

    def command(self, *words):
        self.send(written(*words))
        return self.reply()

    def figures(self, section):
        text = self.command("INFO", section).decode()
        return {name: float(value) for name, value in re.findall(r"^(\w+):([\d.]+)\r$", text, re.M)}

    def cpu(self):
        figures = self.figures("cpu")
        return figures["used_cpu_user"] + figures["used_cpu_sys"]

    def records(self):
        return self.command("DBSIZE")

    def memory(self):
        """Bytes in use, except those of connections and of the log that is yet to be written."""
        figures = self.figures("memory")
        return figures["used_memory"] - figures["mem_clients_normal"] - figures["mem_aof_buffer"]

    def commands(self):
        text = self.command("INFO", "commandstats").decode()
        found = re.findall(r"^cmdstat_(\S+?):calls=(\d+),usec=(\d+)", text, re.M)
        return {name: (int(calls), int(spent)) for name, calls, spent in found}
