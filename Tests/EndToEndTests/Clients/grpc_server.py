"""A server of gRPC without code made from a schema: messages are bytes as they are.

Arguments: the port, and for TLS a certificate and its key. Prints "ready", and "ended NAME" for each call of Sleep and
Hold that its client gave up.
"""

import concurrent.futures
import sys
import threading

import grpc


def echo(request, context):
    context.send_initial_metadata([("x-first", "1")])
    context.set_trailing_metadata([("x-last", "2")])
    return request


def count(request, context):
    for number in range(int(request)):
        yield b"%d" % number


def total(requests, context):
    return b"%d" % sum(int(request) for request in requests)


def chat(requests, context):
    for request in requests:
        yield request.upper()


def fail(request, context):
    context.set_trailing_metadata([("x-why", "because")])
    context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not today")


def sleep(request, context):
    ended = threading.Event()
    context.add_callback(ended.set)
    ended.wait()
    print("ended Sleep", flush=True)
    return b""


def hold(requests, context):
    context.add_callback(lambda: print("ended Hold", flush=True))
    yield from chat(requests, context)


def leave(requests, context):
    """Ends while the client could still send."""
    yield next(requests)
    context.set_code(grpc.StatusCode.RESOURCE_EXHAUSTED)
    context.set_details("enough")


server = grpc.server(concurrent.futures.ThreadPoolExecutor(8))
server.add_generic_rpc_handlers([
    grpc.method_handlers_generic_handler(service, {
        "Echo": grpc.unary_unary_rpc_method_handler(echo),
        "Count": grpc.unary_stream_rpc_method_handler(count),
        "Sum": grpc.stream_unary_rpc_method_handler(total),
        "Chat": grpc.stream_stream_rpc_method_handler(chat),
        "Fail": grpc.unary_unary_rpc_method_handler(fail),
        "Sleep": grpc.unary_unary_rpc_method_handler(sleep),
        "Hold": grpc.stream_stream_rpc_method_handler(hold),
        "Leave": grpc.stream_stream_rpc_method_handler(leave),
    })
    for service in ("test.Test", "test.Protected")
])
place = f"127.0.0.1:{sys.argv[1]}"
if len(sys.argv) > 2:
    certificate, key = (open(path, "rb").read() for path in sys.argv[2:4])
    server.add_secure_port(place, grpc.ssl_server_credentials([(key, certificate)]))
else:
    server.add_insecure_port(place)
server.start()
print("ready", flush=True)
server.wait_for_termination()
