"""A WebSocket client of websocket_server, which prints its findings as JSON.

Arguments: a URL, a task's name, and for wss: the certificate of the authority.
"""

import json
import os
import ssl
import sys

import websockets.exceptions
from websockets.sync.client import connect

PATIENCE = 40
url, task, *authority = sys.argv[1:]
context = ssl.create_default_context(cafile=authority[0]) if authority else None


def ending(connection):
    """Returns the code and the reason with which the server closes the connection."""
    try:
        while True:
            connection.recv(timeout=PATIENCE)
    except websockets.exceptions.ConnectionClosed:
        return [connection.close_code, connection.close_reason]


def echo(connection):
    large = os.urandom(5_000_000)
    report = []
    for message in ["text", "zwölf", b"\x00\xff", b"", large]:
        connection.send(message)
        report.append(connection.recv(timeout=PATIENCE) == message)
    # Many at once, before any is read.
    for number in range(200):
        connection.send(str(number))
    report.append([int(connection.recv(timeout=PATIENCE)) for _ in range(200)] == list(range(200)))
    report.append(connection.ping().wait(PATIENCE))
    connection.close(4000, "done")
    return report + [connection.close_code]


def leave(connection):
    connection.send("go")
    return ending(connection)


def cut(connection):
    """Closes the connection without a close frame once the server has replied."""
    connection.send("hello")
    connection.recv(timeout=PATIENCE)
    os._exit(0)


def stay(connection):
    connection.send("hello")
    connection.recv(timeout=PATIENCE)
    print("open", flush=True)
    return ending(connection)


def leave_silent(connection):
    """Says nothing, and waits for the end."""
    return ending(connection)


def refused():
    try:
        connect(url, open_timeout=PATIENCE, proxy=None, additional_headers={"Authorization": "Bearer alice", "Idempotency-Key": "k"})
    except websockets.exceptions.InvalidStatus as error:
        return [error.response.status_code, error.response.body.decode()]


if task == "refused":
    print(json.dumps(refused()))
else:
    with connect(url, open_timeout=PATIENCE, max_size=None, compression=None, ping_interval=None, proxy=None,
                 ssl=context) as opened:
        print(json.dumps(globals()[task](opened)))
