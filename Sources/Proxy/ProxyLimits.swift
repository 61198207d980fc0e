import Idempotency
import Wire

/// The bounds of section 5 of the contract, `limits`.
package struct ProxyLimits: Sendable {
  package var maxConnections = 10_000
  package var maxInFlight = 4096
  /// In bytes.
  package var bodyMemory = 256 << 20
  package var headerBytes = 64 << 10
  package var headerLine = 16 << 10
  package var headerCount = 100
  package var headerTimeout: Milliseconds = .seconds(10)
  package var bodyTimeout: Milliseconds = .seconds(30)
  package var writeTimeout: Milliseconds = .seconds(30)
  package var idleTimeout: Milliseconds = .seconds(75)
  /// How long nothing may pass in a connection whose protocol was switched.
  package var tunnelTimeout: Milliseconds = .seconds(3600)
  package var pipelineBytes = 64 << 10
  /// Streams of one connection at once.
  package var http2MaxStreams = 100
  /// What one stream may send of a body before it is read, in bytes.
  package var http2Window = 64 << 10
  /// RST_STREAM frames of one connection within 30 s.
  package var http2Resets = 200
  /// PING, SETTINGS and PRIORITY frames of one connection within 30 s.
  package var http2ControlFrames = 1000

  package init() {}

  /// What a request's head may be.
  var head: HeadLimits {
    HeadLimits(headBytes: headerBytes, maxFields: headerCount, lineBytes: headerLine)
  }
}
