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
