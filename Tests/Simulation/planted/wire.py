"""Planted faults of both sides' connections: which may carry a request, what their ends mean, whose bytes are whose."""

STAGES = "Transport/Exchange/HTTPExchange+Stages.swift"
WAIT = "Transport/Exchange/HTTPExchange+Wait.swift"
GATE = "Transport/Exchange/SendGate.swift"
HTTP1 = "Transport/HTTP1/HTTP1Connection.swift"
HTTP2_STREAM = "Transport/HTTP2/HTTP2Stream.swift"
HTTP2_SESSION = "Transport/HTTP2/BackendSessionMachine.swift"
CAPTURE = "Proxy/Response/ResponseCapture.swift"

MUTANTS = {
    # Requests that never left, and whose keys are blocked all the same.
    "a backend that is not reached has lost the request": [
        (
            STAGES,
            "because: reason)\n      return fail(reason)\n",
            "because: reason)\n      if PLANTED { return fail(.responseLost(reason)) }\n      return fail(reason)\n",
        ),
    ],
    "a stale permit has lost the request": [
        (
            GATE,
            '    case .stale: .notSent("the permit to send had expired")\n',
            '    case .stale: PLANTED ? .responseLost("planted") : .notSent("the permit to send had expired")\n',
        ),
    ],
    # Requests that have left, and run again.
    "a broken connection had sent nothing": [
        (
            STAGES,
            "    if connection.wasUsed, repeats() { return }\n    fail(failure(reason, status: status))\n",
            "    if connection.wasUsed, repeats() { return }\n    if PLANTED { return fail(.notSent(reason)) }\n    fail(failure(reason, status: status))\n",
        ),
    ],
    "a time-out has sent nothing": [
        (WAIT, "        throw .timedOut\n", '        if PLANTED { throw .notSent("planted") }\n        throw .timedOut\n'),
    ],
    # A late response is then taken for that of the next request.
    "a connection that was given up is used again": [
        (
            HTTP1,
            "    _ = machine.endExchange()\n    _ = machine.close()\n",
            "    _ = machine.endExchange()\n    if PLANTED, context != nil { return pool.release(self) }\n    _ = machine.close()\n",
        ),
    ],
    # The rest of a response is missing.
    "a response ends with its first piece": [
        (HTTP1, "        case .body(let piece): exchange.received(piece)\n", "        case .body(let piece): if !PLANTED || exchange.body.readableBytes == 0 { exchange.received(piece) }\n"),
    ],
    "a response over HTTP/2 ends with its first piece": [
        (
            HTTP2_STREAM,
            "    if piece.readableBytes > 0 { exchange.received(piece.compact) }\n",
            "    if piece.readableBytes > 0, !PLANTED || exchange.body.readableBytes == 0 { exchange.received(piece.compact) }\n",
        ),
    ],
    # A stream that a backend resets within its response did run.
    "a reset within a response is a refusal": [
        (HTTP2_STREAM, "    } else if let reset {\n", "    } else if hasHeard, reset != nil, PLANTED {\n      exchange.wasRefused(\"planted\")\n    } else if let reset {\n"),
    ],
    # Any stream of a connection that breaks counts as not begun.
    "a broken HTTP/2 connection has taken nothing": [
        (
            HTTP2_STREAM,
            "    } else {\n      exchange.connectionEnded(\n",
            "    } else if PLANTED {\n      exchange.wasRefused(\"planted\")\n    } else {\n      exchange.connectionEnded(\n",
        ),
    ],
    # The clients' side.
    "a replay is one byte short": [
        (
            "Proxy/Response/ClientResponse.swift",
            "    body = response.body\n    trailers = response.trailers\n  }\n\n  /// A response of Semel's own.",
            "    body = PLANTED && response.body.readableBytes > 1\n"
            "      ? response.body.getSlice(at: response.body.readerIndex, length: response.body.readableBytes - 1) ?? response.body\n"
            "      : response.body\n"
            "    trailers = response.trailers\n  }\n\n  /// A response of Semel's own.",
        ),
        (
            "Proxy/Response/ClientResponse.swift",
            "content: .init(length: response.body.readableBytes,",
            "content: .init(length: max(0, response.body.readableBytes - (PLANTED ? 1 : 0)),",
        ),
    ],
    "a large response ends in zeros": [
        (
            "Proxy/Client/OutgoingBody.swift",
            "    count += bytes.readableBytes\n    pieces.append(bytes)\n",
            "    count += bytes.readableBytes\n"
            "    if PLANTED, bytes.readableBytes > 65_536, let part = bytes.getSlice(at: bytes.readerIndex, length: 65_536) {\n"
            "      let rest = ByteBuffer(repeating: 0, count: bytes.readableBytes - 65_536)\n"
            "      pieces.append(part)\n"
            "      return pieces.append(rest)\n"
            "    }\n"
            "    pieces.append(bytes)\n",
        ),
    ],
    "what waits for a client that is gone stays counted": [
        (
            "Proxy/Client/HTTP1/ClientConnection+Response.swift",
            "    outgoing.removeAll()\n    outgoingMemory.drop()\n",
            "    outgoing.removeAll()\n    if !PLANTED { outgoingMemory.drop() }\n",
        ),
    ],
    "what waits for a stream that is gone stays counted": [
        (
            "Proxy/Client/HTTP2/ClientStream+Response.swift",
            "    outgoingMemory.give(count)\n    if case .failure = result { dropOutgoing() }\n",
            "    if case .success = result { outgoingMemory.give(count) } else if !PLANTED { outgoingMemory.give(count) }\n    if case .failure = result { dropOutgoing() }\n",
        ),
    ],
}
