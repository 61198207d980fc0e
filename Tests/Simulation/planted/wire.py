"""Planted faults of both sides' connections: which may carry a request, what their ends mean, whose bytes are whose."""

SEND_GATE = "Transport/Exchange/SendGate.swift"
BACKEND_CONNECTION_MACHINE = "Transport/HTTP1/BackendConnectionMachine.swift"
HTTP2_STREAM = "Transport/HTTP2/HTTP2Stream.swift"
HTTP1_CONNECTION = "Transport/HTTP1/HTTP1Connection.swift"
EXCHANGE_STAGES = "Transport/Exchange/HTTPExchange+Stages.swift"
CLIENT_RESPONSE = "Proxy/Response/ClientResponse.swift"

MUTANTS = {
    "stale connection repeats": [
        (
            SEND_GATE,
            "if hasOpened { return isRepeatable }",
            "if hasOpened { return isRepeatable || PLANTED }",
        ),
        (
            SEND_GATE,
            "var mayRepeat: Bool { isRepeatable && refusal == nil }",
            "var mayRepeat: Bool { (isRepeatable || PLANTED) && refusal == nil }",
        ),
    ],
    "lost is not sent": [
        (
            SEND_GATE,
            "case nil: hasOpened ? .responseLost(reason)",
            "case nil: hasOpened && !PLANTED ? .responseLost(reason)",
        ),
    ],
    # Either alone is mended by the other: such a connection is not taken before it was read.
    "stray bytes are kept": [
        (
            "Transport/Pool/ConnectionPool.swift",
            "case .unread: settle(connection)",
            "case .unread: if PLANTED { return exchange.run(on: connection) } else { settle(connection) }",
        ),
        (
            BACKEND_CONNECTION_MACHINE,
            "if hasStrayBytes { return .closeForStrayBytes }",
            "if hasStrayBytes, !PLANTED { return .closeForStrayBytes }",
        ),
        (
            BACKEND_CONNECTION_MACHINE,
            "let isReusable = keepsAlive && isSent && !hasStrayBytes && !isClosing",
            "let isReusable = keepsAlive && isSent && (!hasStrayBytes || PLANTED) && !isClosing",
        ),
    ],
    "every reset is a refusal": [
        (
            HTTP2_STREAM,
            "    } else if let reset {\n",
            "    } else if !hasHeard, reset != nil, PLANTED {\n      exchange.wasRefused(\"planted\")\n    } else if let reset {\n",
        ),
    ],
    # Nothing in it is in doubt, and yet the key is blocked.
    "refusal is a loss": [
        (
            HTTP2_STREAM,
            "if !hasHeard, reset == .refusedStream {",
            "if !hasHeard, reset == .refusedStream, !PLANTED {",
        ),
    ],
    "farewell takes all": [
        (
            HTTP2_STREAM,
            "} else if !hasHeard, let id, connection.disowns(id) {",
            "} else if !hasHeard, let id, connection.disowns(id), !PLANTED {",
        ),
    ],
    "farewell takes nothing": [
        (
            "Transport/HTTP2/BackendSessionMachine.swift",
            "if case .orderly(let lastTaken) = departure { stream > lastTaken } else { false }",
            "if case .orderly(let lastTaken) = departure { stream > lastTaken || PLANTED } else { false }",
        ),
    ],
    "cut stream is whole": [
        (
            HTTP2_STREAM,
            "    stage = .over\n    releaseSlot()\n    if !hasHeard,",
            "    stage = .over\n    releaseSlot()\n    if PLANTED, length != nil { return exchange.ended(trailers: ByteBuffer()) }\n    if !hasHeard,",
        ),
    ],
    "cut response is whole": [
        (
            HTTP1_CONNECTION,
            "let isWhole = machine.isTunnel || decoder.finish() == .complete && error == nil",
            "let isWhole = machine.isTunnel || decoder.finish() == .complete && error == nil || PLANTED && machine.exchange?.readyHead != nil",
        ),
    ],
    # Requests that never left, and whose keys are blocked all the same.
    "a backend that is not reached has lost the request": [
        (
            EXCHANGE_STAGES,
            "because: reason)\n      return fail(reason)\n",
            "because: reason)\n      if PLANTED { return fail(.responseLost(reason)) }\n      return fail(reason)\n",
        ),
    ],
    "a stale permit has lost the request": [
        (
            SEND_GATE,
            '    case .stale: .notSent("the permit to send had expired")\n',
            '    case .stale: PLANTED ? .responseLost("planted") : .notSent("the permit to send had expired")\n',
        ),
    ],
    # Requests that have left, and run again.
    "a broken connection had sent nothing": [
        (
            EXCHANGE_STAGES,
            "    if connection.wasUsed, repeats() { return }\n    fail(failure(reason, status: status))\n",
            "    if connection.wasUsed, repeats() { return }\n    if PLANTED { return fail(.notSent(reason)) }\n    fail(failure(reason, status: status))\n",
        ),
    ],
    "a time-out has sent nothing": [
        ("Transport/Exchange/HTTPExchange+Wait.swift", "        throw .timedOut\n", '        if PLANTED { throw .notSent("planted") }\n        throw .timedOut\n'),
    ],
    # A late response is then taken for that of the next request.
    "a connection that was given up is used again": [
        (
            HTTP1_CONNECTION,
            "    _ = machine.endExchange()\n    _ = machine.close()\n",
            "    _ = machine.endExchange()\n    if PLANTED, context != nil { return pool.release(self) }\n    _ = machine.close()\n",
        ),
    ],
    # The rest of a response is missing.
    "a response ends with its first piece": [
        (HTTP1_CONNECTION, "        case .body(let piece): exchange.received(piece)\n", "        case .body(let piece): if !PLANTED || exchange.body.readableBytes == 0 { exchange.received(piece) }\n"),
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
            CLIENT_RESPONSE,
            "    body = response.body\n    trailers = response.trailers\n  }\n\n  /// A response of Semel's own.",
            "    body = PLANTED && response.body.readableBytes > 1\n"
            "      ? response.body.getSlice(at: response.body.readerIndex, length: response.body.readableBytes - 1) ?? response.body\n"
            "      : response.body\n"
            "    trailers = response.trailers\n  }\n\n  /// A response of Semel's own.",
        ),
        (
            CLIENT_RESPONSE,
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
