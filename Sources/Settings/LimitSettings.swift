import Idempotency

/// The limits on the resources of this process, over all routes and event loops.
public struct LimitSettings: Hashable, Sendable {
  /// The maximum number of connections from clients.
  public var maxConnections = 10_000
  /// The maximum number of requests in progress.
  public var maxInFlight = 4096
  /// The maximum size of all bodies in memory together, in bytes.
  public var bodyMemory = 256 << 20
  /// The maximum size of a request's head, in bytes.
  public var headerBytes = 64 << 10
  /// The maximum length of one line of a head, in bytes. It is twice the limit of nginx and Apache, since tokens and
  /// cookies grow.
  public var headerLine = 16 << 10
  /// The maximum number of field lines in a head. Apache and hyper have the same limit; clients and gateways send 10 to
  /// 40.
  public var headerCount = 100
  /// The time limit for the arrival of a request's head.
  public var headerTimeout: Milliseconds = .seconds(10)
  /// The time limit for the arrival of a protected request's body, or for a pause in one that is passed through.
  public var bodyTimeout: Milliseconds = .seconds(30)
  /// The time for which a client may read nothing of a response that is ready for it. It equals the time for which its
  /// own body may pause.
  public var writeTimeout: Milliseconds = .seconds(30)
  /// The time for which a client's connection may be idle between two requests.
  public var idleTimeout: Milliseconds = .seconds(75)
  /// The maximum number of bytes that a client may send ahead of a response that it waits for: a few hundred small
  /// requests.
  public var pipelineBytes = 64 << 10
  /// The time for which no byte may pass in a tunnel (a connection with a switched protocol), or in a body after the
  /// response has begun. Most long-lived connections transmit something every few minutes; an hour spares those that do
  /// not, and still ends every dead connection.
  public var tunnelTimeout: Milliseconds = .seconds(3600)
  /// The maximum number of concurrent streams on one connection.
  public var http2MaxStreams = 100
  /// The maximum number of bytes of a body that one stream may send before they are read.
  public var http2Window = 64 << 10
  /// The maximum number of RST_STREAM frames on one connection within 30 s.
  public var http2Resets = 200
  /// The maximum number of PING, SETTINGS and PRIORITY frames on one connection within 30 s.
  public var http2ControlFrames = 1000

  public init() {}
}

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
