"""Holds many idle connections: idle_connections.py PORT COUNT

Makes COUNT connections with one request with its response each and says "held COUNT". At SIGUSR1 it sends another request on
each of them and says "responded COUNT".
"""

import resource
import signal
import socket
import sys

REQUEST = b"GET /v1/orders HTTP/1.1\r\nHost: h\r\n\r\n"


def response(connection):
    """Reads one response by its length, and returns its status."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(4096)
        if not piece:
            raise EOFError("closed without a response")
        data += piece
    head, body = data.split(b"\r\n\r\n", 1)
    length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
    while len(body) < length:
        body += connection.recv(4096)
    return int(head.split()[1])


def ask_all(connections):
    """Sends in portions, so that the wait for one response is the wait for many."""
    for start in range(0, len(connections), 200):
        portion = connections[start : start + 200]
        for connection in portion:
            connection.sendall(REQUEST)
        for connection in portion:
            status = response(connection)
            if status != 400:
                raise ValueError(f"status {status}")


def main():
    port, count = int(sys.argv[1]), int(sys.argv[2])
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    connections = []
    for _ in range(count):
        # An address of its own, so that the ports of all others stay free.
        connections.append(socket.create_connection(("127.0.0.1", port), 20, ("127.0.0.3", 0)))
        if len(connections) % 200 == 0:
            ask_all(connections[-200:])
    print("held", len(connections), flush=True)
    signal.sigwait({signal.SIGUSR1})
    ask_all(connections)
    print("responded", len(connections), flush=True)


main()
