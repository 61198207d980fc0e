"""A server of WebSocket. Arguments: the port, and for TLS a certificate and its key.

Prints "ready", and "opened PATH" and "closed PATH CODE" for each connection (1006: cut).
"""

import ssl
import sys

import websockets.exceptions
from websockets.sync.server import serve


def handle(connection):
    path = connection.request.path
    print(f"opened {path}", flush=True)
    try:
        match path.split("/")[-1]:
            case "leave":
                connection.recv()
                connection.close(4001, "enough")
            case "cut":
                connection.recv()
                connection.socket.shutdown(2)
            case "greet":
                connection.send("welcome")
                connection.recv()
            case _:
                for message in connection:
                    connection.send(message)
    except websockets.exceptions.ConnectionClosed:
        pass
    connection.close()
    print(f"closed {path} {connection.close_code}", flush=True)


context = None
if len(sys.argv) > 2:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2], sys.argv[3])
with serve(handle, "127.0.0.1", int(sys.argv[1]), ssl=context, max_size=None, compression=None,
           ping_interval=None) as server:
    print("ready", flush=True)
    server.serve_forever()
