import Idempotency

extension LimitSettings {
  mutating func read(_ section: Section) {
    section.integer("max_connections", into: &maxConnections, in: 1...1_000_000)
    section.integer("max_in_flight", into: &maxInFlight, in: 1...1_000_000)
    section.limit("caller_in_flight", into: &callerInFlight, atMost: 1_000_000)
    if let rate = section.member("caller_new_keys")?.parsed("a rate such as 600/m", Self.rate) {
      callerNewKeys = rate
    }
    section.size("body_memory", into: &bodyMemory, in: 1 << 20...1 << 40)
    // A lower limit would refuse ordinary cookies; a higher one would admit a flood.
    section.size("header_bytes", into: &headerBytes, in: 1 << 10...1 << 20)
    // RFC 9112 (section 3) recommends at least 8000 bytes for a request line; a lower limit is for known clients.
    section.size("header_line", into: &headerLine, in: 256...1 << 20)
    section.integer("header_count", into: &headerCount, in: 10...10_000)
    section.duration("header_timeout", into: &headerTimeout, atLeast: 1)
    section.duration("body_timeout", into: &bodyTimeout, atLeast: 1)
    section.duration("write_timeout", into: &writeTimeout, atLeast: 1)
    section.duration("idle_timeout", into: &idleTimeout, atLeast: 1)
    section.size("pipeline_bytes", into: &pipelineBytes, in: 1 << 10...1 << 24)
    section.duration("tunnel_timeout", into: &tunnelTimeout, atLeast: 1)
    section.integer("http2_max_streams", into: &http2MaxStreams, in: 1...10_000)
    // A window below HTTP/2's initial one would have to be reduced after the first bytes have arrived.
    section.size("http2_window", into: &http2Window, in: 64 << 10...16 << 20)
    section.integer("http2_resets", into: &http2Resets, in: 1...1_000_000)
    section.integer("http2_control_frames", into: &http2ControlFrames, in: 1...1_000_000)
  }
}

extension LimitSettings {
  private static let periods: [String: Milliseconds] = [
    "s": .seconds(1), "m": .seconds(60), "h": .seconds(3600),
  ]

  /// A rate such as `600/m`; `0` for no limit.
  private static func rate(_ text: String) throws(Refusal) -> KeyRate? {
    if text == "0" { return nil }
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, parts[0].utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }),
      let count = Int(parts[0]), 1...1_000_000 ~= count, let period = periods[String(parts[1])]
    else { throw Refusal("must be a rate in s, m or h, such as 600/m, or 0 for no limit") }
    return KeyRate(count: count, period: period)
  }

  private static func text(_ rate: KeyRate?) -> String {
    rate.map { rate in "\(rate.count)/\(periods.first { $0.value == rate.period }?.key ?? "s")" } ?? "0"
  }
}

extension LimitSettings {
  var shown: Shown {
    [
      "max_connections": .number(maxConnections),
      "max_in_flight": .number(maxInFlight),
      "caller_in_flight": .number(callerInFlight ?? 0),
      "caller_new_keys": .text(Self.text(callerNewKeys)),
      "body_memory": .size(bodyMemory),
      "header_bytes": .size(headerBytes),
      "header_line": .size(headerLine),
      "header_count": .number(headerCount),
      "header_timeout": .span(headerTimeout),
      "body_timeout": .span(bodyTimeout),
      "write_timeout": .span(writeTimeout),
      "idle_timeout": .span(idleTimeout),
      "pipeline_bytes": .size(pipelineBytes),
      "tunnel_timeout": .span(tunnelTimeout),
      "http2_max_streams": .number(http2MaxStreams),
      "http2_window": .size(http2Window),
      "http2_resets": .number(http2Resets),
      "http2_control_frames": .number(http2ControlFrames),
    ]
  }
}
