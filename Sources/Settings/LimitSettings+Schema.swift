import Idempotency

extension LimitSettings {
  static let schema = Schema(LimitSettings(), removed: removed) {
    Member(
      "max_connections", \.maxConnections, .integer(1...1_000_000),
      "connections of clients, or as many as the limit of open files has room for")
    Member("max_in_flight", \.maxInFlight, .integer(1...1_000_000), "requests at once")
    Member(
      "caller_in_flight", \.callerInFlight, .limit(atMost: 1_000_000),
      "keyed requests and inquiries of one caller at once on a node; 0 for no limit")
    Member(
      "caller_new_keys", \.callerNewKeys, .rate,
      "the rate of new keys of one caller on a node; 0 for no limit")
    Member("body_memory", \.bodyMemory, .size(1 << 20...1 << 40), "the memory for all bodies together")
    // A lower limit would refuse ordinary cookies; a higher one would admit a flood.
    Member("header_bytes", \.headerBytes, .size(1 << 10...1 << 20), "the size of a request's head")
    Member("header_timeout", \.headerTimeout, .duration(atLeast: 1), "the time for a request's head")
    Member(
      "body_timeout", \.bodyTimeout, .duration(atLeast: 1),
      "the longest pause of a protected body, which has it and a second for each KiB; passed through, 512 bytes for "
        + "each of its seconds begin it anew")
    Member(
      "write_timeout", \.writeTimeout, .duration(atLeast: 1),
      "the time in which a client takes less of its response than 512 bytes for each second of it; over HTTP/2 none"
    )
    Member(
      "idle_timeout", \.idleTimeout, .duration(atLeast: 1),
      "the time between two requests of a connection, and of a backend's silence once the client of a passed-through "
        + "request has ended its sending side")
    Member(
      "tunnel_timeout", \.tunnelTimeout, .duration(atLeast: 1),
      "the time without a byte in a tunnel, or in a body after the response has begun")
    Member("http2_max_streams", \.http2MaxStreams, .integer(1...10_000), "streams of one connection at once")
  }

  private static let removed: [String: String] = [
    "header_line": fixed(ByteSize.text(ConnectionLimits.headerLineBytes)),
    "header_count": fixed("\(ConnectionLimits.headerFields)"),
    "pipeline_bytes": fixed(ByteSize.text(ConnectionLimits.pipelineBytes)),
    "http2_window": fixed(ByteSize.text(ConnectionLimits.http2WindowBytes)),
    "http2_resets": fixed("\(ConnectionLimits.http2Resets)"),
    "http2_control_frames": fixed("\(ConnectionLimits.http2ControlFrames)"),
  ]

  private static func fixed(_ limit: String) -> String {
    "is a setting of earlier versions: this limit is always \(limit) now, the earlier default; take the member out"
  }
}

extension Notation<KeyRate?> {
  private static let periods: [String: Milliseconds] = [
    "s": .seconds(1), "m": .seconds(60), "h": .seconds(3600),
  ]

  fileprivate static let rate = Notation.text(
    "a rate such as 600/m",
    show: { rate in
      .text(
        rate.map { rate in "\(rate.count)/\(periods.first { $0.value == rate.period }?.key ?? "s")" } ?? "0")
    },
    parse: { text throws(Refusal) in
      if text == "0" { return nil }
      let parts = text.split(separator: "/", omittingEmptySubsequences: false)
      guard parts.count == 2, parts[0].utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }),
        let count = Int(parts[0]), 1...1_000_000 ~= count, let period = periods[String(parts[1])]
      else { throw Refusal("must be a rate in s, m or h, such as 600/m, or 0 for no limit") }
      return KeyRate(count: count, period: period)
    })
}
