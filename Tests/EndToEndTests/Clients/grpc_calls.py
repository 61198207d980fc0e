"""Calls grpc_server in all the ways of gRPC and prints what came of it, as JSON.

Arguments: the port (for TLS port:CA), the service, and, for one call alone, its key or an empty text.
"""

import json
import queue
import sys

import grpc

PATIENCE = 40
port, *authority = sys.argv[1].split(":")
if authority:
    trusted = grpc.ssl_channel_credentials(open(authority[0], "rb").read())
    channel = grpc.secure_channel(f"localhost:{port}", trusted)
else:
    channel = grpc.insecure_channel(f"127.0.0.1:{port}")


def path(name):
    return f"/{sys.argv[2]}/{name}"


def echo(size):
    message = b"x" * size
    reply, call = channel.unary_unary(path("Echo")).with_call(message, timeout=PATIENCE)
    return [reply == message, dict(call.initial_metadata()).get("x-first"), dict(call.trailing_metadata()).get("x-last")]


def chat(words, name="Chat"):
    """Sends each message only when the reply to the one before has come."""
    outgoing = queue.Queue()
    calls = channel.stream_stream(path(name))(iter(outgoing.get, None), timeout=PATIENCE)
    replies = []
    for word in words:
        outgoing.put(word.encode())
        replies.append(next(calls).decode())
    if name == "Chat":
        outgoing.put(None)
    return replies, calls


def fail(metadata=()):
    return failure(lambda: channel.unary_unary(path("Fail"))(b"", timeout=PATIENCE, metadata=metadata))


def failure(call):
    try:
        call()
        return None
    except grpc.RpcError as error:
        return [error.code().name, error.details(), dict(error.trailing_metadata() or ()).get("x-why")]


report = {}
if len(sys.argv) > 3:
    report["fail"] = fail([("idempotency-key", sys.argv[3])] if sys.argv[3] else [])
else:
    report["fail"] = fail()
    report["echo"] = echo(5)
    report["large"] = echo(3_000_000)
    report["count"] = [int(reply) for reply in channel.unary_stream(path("Count"))(b"100", timeout=PATIENCE)]
    report["sum"] = int(channel.stream_unary(path("Sum"))((b"%d" % n for n in range(100)), timeout=PATIENCE))
    replies, calls = chat(["one", "two", "three"])
    report["chat"], report["chat_end"] = replies, [reply.decode() for reply in calls]
    replies, calls = chat(["one"], "Hold")
    calls.cancel()
    report["cancel"] = replies + [calls.code().name]
    report["deadline"] = failure(lambda: channel.unary_unary(path("Sleep"))(b"", timeout=1))
    replies, calls = chat(["one"], "Leave")
    report["leave"] = [replies, failure(lambda: list(calls))]
print(json.dumps(report))
