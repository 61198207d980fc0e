/// The limits on the resources of this process, over all routes and event loops.
public struct LimitSettings: Hashable, Sendable {
  /// The maximum number of connections from clients.
  public var maxConnections = 10_000
  /// The maximum number of requests in progress.
  public var maxInFlight = 4096
  /// The maximum number of keyed requests of one caller in progress; `nil` for no limit.
  public var callerInFlight: Int? = 256
  /// The maximum rate of new keys of one caller; `nil` for no limit.
  public var callerNewKeys: KeyRate?
  /// The maximum size of all bodies in memory together, in bytes.
  public var bodyMemory = 256 << 20
  /// The maximum size of a request's head, in bytes.
  public var headerBytes = 64 << 10
  /// The time limit for the arrival of a request's head.
  public var headerTimeout: Milliseconds = .seconds(10)
  /// The time limit for the arrival of a protected request's body. Of one that is passed through, it limits the waiting
  /// for so many bytes that a least rate is kept.
  public var bodyTimeout: Milliseconds = .seconds(30)
  /// The time for which a client may take less of a response that is ready for it than a least rate. It equals the time
  /// in which its own body has to keep that.
  public var writeTimeout: Milliseconds = .seconds(30)
  /// The time for which a client's connection may be idle between two requests, and for which a backend may be silent
  /// during a request that is passed through and whose client has ended its sending side.
  public var idleTimeout: Milliseconds = .seconds(75)
  /// The time for which no byte may pass in a tunnel (a connection with a switched protocol), or in a body after the
  /// response has begun. Most long-lived connections transmit something every few minutes; an hour spares those that do
  /// not, and still ends every dead connection.
  public var tunnelTimeout: Milliseconds = .seconds(3600)
  /// The maximum number of concurrent streams on one connection.
  public var http2MaxStreams = 100

  public init() {}
}

/// The limits of a client's connection that no setting changes. A lower value would refuse requests of common clients,
/// and a higher one would admit floods.
public enum ConnectionLimits {
  /// The maximum length of one line of a head, in bytes. It is twice the limit of nginx and Apache, since tokens and
  /// cookies grow.
  public static let headerLineBytes = 16 << 10
  /// The maximum number of field lines in a head. Apache and hyper have the same limit; clients and gateways send 10 to
  /// 40.
  public static let headerFields = 100
  /// The maximum number of bytes that a client may send ahead of a response that it waits for: a few hundred small
  /// requests.
  public static let pipelineBytes = 64 << 10
  /// The maximum number of bytes of a body that one stream may send before they are read: about HTTP/2's initial window
  /// (RFC 9113, section 6.9.2). A client that uploads from afar sends a window for each round trip, 640 KiB in a second
  /// at 100 ms, and more over several streams or over HTTP/1.1.
  public static let http2WindowBytes = 64 << 10
  /// The maximum number of RST_STREAM frames on one connection within 30 s. A browser that leaves a page resets at most
  /// its streams at once; a flood of resets (CVE-2023-44487) has thousands in a second. A gateway with the resets of many
  /// clients keeps below the limit by several connections.
  public static let http2Resets = 200
  /// The maximum number of frames on one connection within 30 s that advance no request, beyond those that its requests
  /// and responses explain. A client that keeps a connection alive sends a PING in some seconds.
  public static let http2ControlFrames = 1000
}

/// A rate of new keys: so many in a period, all at once or one by one.
public struct KeyRate: Hashable, Sendable {
  public let count: Int
  public let period: Milliseconds

  public init(count: Int, period: Milliseconds) {
    self.count = count
    self.period = period
  }

  /// Takes one key out of a quota that fills evenly (the generic cell rate algorithm, ITU-T I.371).
  ///
  /// - Parameters:
  ///   - fullAt: The time at which the quota is full again; 0 at first.
  ///   - now: The time by the same clock, in nanoseconds.
  /// - Returns: The time at which it is full afterwards, and the wait until the next key if there is none now.
  public func take(fullAt: Int64, now: Int64) -> (fullAt: Int64, wait: Milliseconds?) {
    let whole = period.count * 1_000_000
    let each = whole / Int64(count)
    let next = max(fullAt, now) + each
    guard next - now > whole else { return (next, nil) }
    return (fullAt, Milliseconds((next - now - whole + 999_999) / 1_000_000))
  }
}
