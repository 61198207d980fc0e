import Idempotency

extension LimitSettings {
  mutating func read(_ section: Section) {
    section.integer("max_connections", into: &maxConnections, in: 1...1_000_000)
    section.integer("max_in_flight", into: &maxInFlight, in: 1...1_000_000)
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
  var shown: Shown {
    [
      "max_connections": .number(maxConnections),
      "max_in_flight": .number(maxInFlight),
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
