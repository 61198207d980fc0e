import Idempotency
import Wire

/// The bounds of section 5 of the contract, `limits`.
public struct ProxyLimits: Sendable {
  public var maxConnections = 10_000
  public var maxInFlight = 4096
  /// In bytes.
  public var bodyMemory = 256 << 20
  public var headerBytes = 64 << 10
  public var headerLine = 16 << 10
  public var headerCount = 100
  public var headerTimeout: Milliseconds = .seconds(10)
  public var bodyTimeout: Milliseconds = .seconds(30)
  public var writeTimeout: Milliseconds = .seconds(30)
  public var idleTimeout: Milliseconds = .seconds(75)
  /// How long nothing may pass in a connection whose protocol was switched.
  public var tunnelTimeout: Milliseconds = .seconds(3600)
  public var pipelineBytes = 64 << 10
  /// Streams of one connection at once.
  public var http2MaxStreams = 100
  /// What one stream may send of a body before it is read, in bytes.
  public var http2Window = 64 << 10
  /// RST_STREAM frames of one connection within 30 s.
  public var http2Resets = 200
  /// Frames of one connection within 30 s that advance no request, beyond those that responses and requests account for.
  public var http2ControlFrames = 1000

  public init() {}

  /// What a request's head may be.
  var head: HeadLimits {
    HeadLimits(headBytes: headerBytes, maxFields: headerCount, lineBytes: headerLine)
  }
}
