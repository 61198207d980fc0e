import Idempotency

/// What Semel holds at most, over all routes and event loops.
public struct LimitSettings: Hashable, Sendable {
  /// Of clients.
  public var maxConnections = 10_000
  /// Requests.
  public var maxInFlight = 4096
  /// All bodies held together, in bytes.
  public var bodyMemory = 256 << 20
  /// Of a request's head, in bytes.
  public var headerBytes = 64 << 10
  /// Of one line of it, in bytes. Twice what nginx and Apache take, since tokens and cookies grow.
  public var headerLine = 16 << 10
  /// Field lines of a head. As many as Apache and hyper take; clients and gateways send 10 to 40.
  public var headerCount = 100
  public var headerTimeout: Milliseconds = .seconds(10)
  public var bodyTimeout: Milliseconds = .seconds(30)
  /// For which a client may take nothing of an answer that waits for it. As long as its own body may pause.
  public var writeTimeout: Milliseconds = .seconds(30)
  /// Of a client's connection between two requests.
  public var idleTimeout: Milliseconds = .seconds(75)
  /// What a client may send ahead of the answer that it waits for, in bytes: a few hundred small requests.
  public var pipelineBytes = 64 << 10
  /// How long nothing may pass in a connection whose protocol was switched. Most that live long say something within
  /// minutes; an hour leaves those that do not in peace, and lets nothing dead stay for ever.
  public var tunnelTimeout: Milliseconds = .seconds(3600)
  /// Streams of one connection at once.
  public var http2MaxStreams = 100
  /// What one stream may send of a body before it is read, in bytes.
  public var http2Window = 64 << 10
  /// RST_STREAM frames of one connection within 30 s.
  public var http2Resets = 200
  /// PING, SETTINGS and PRIORITY frames of one connection within 30 s.
  public var http2ControlFrames = 1000

  public init() {}
}

extension LimitSettings {
  mutating func read(_ section: Section) {
    section.integer("max_connections", into: &maxConnections, in: 1...1_000_000)
    section.integer("max_in_flight", into: &maxInFlight, in: 1...1_000_000)
    section.size("body_memory", into: &bodyMemory, in: 1 << 20...1 << 40)
    // Less would refuse everyday cookies; more is a flood.
    section.size("header_bytes", into: &headerBytes, in: 1 << 10...1 << 20)
    // RFC 9112 (section 3) advises 8000 bytes of a request line at least; less is for those who know their clients.
    section.size("header_line", into: &headerLine, in: 256...1 << 20)
    section.integer("header_count", into: &headerCount, in: 10...10_000)
    section.duration("header_timeout", into: &headerTimeout, atLeast: 1)
    section.duration("body_timeout", into: &bodyTimeout, atLeast: 1)
    section.duration("write_timeout", into: &writeTimeout, atLeast: 1)
    section.duration("idle_timeout", into: &idleTimeout, atLeast: 1)
    section.size("pipeline_bytes", into: &pipelineBytes, in: 1 << 10...1 << 24)
    section.duration("tunnel_timeout", into: &tunnelTimeout, atLeast: 1)
    section.integer("http2_max_streams", into: &http2MaxStreams, in: 1...10_000)
    // A window below HTTP/2's own first one would have to be made smaller after the first bytes have come.
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
