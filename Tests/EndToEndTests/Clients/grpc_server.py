"""A server of gRPC without code made from a schema: messages are bytes as they are. Argument: the port."""

import concurrent.futures
import sys

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
        "Leave": grpc.stream_stream_rpc_method_handler(leave),
    })
    for service in ("test.Test", "test.Protected")
])
server.add_insecure_port(f"127.0.0.1:{sys.argv[1]}")
server.start()
print("ready", flush=True)
server.wait_for_termination()
