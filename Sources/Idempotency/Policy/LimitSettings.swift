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
