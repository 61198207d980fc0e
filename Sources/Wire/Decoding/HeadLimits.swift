/// The limits on a message's head, beyond which it is refused.
public struct HeadLimits: Sendable, Equatable {
  /// The maximum size of the whole head in bytes, from the first byte of the start line to the empty line. The trailer
  /// section has the same limit.
  public var headBytes: Int
  /// The maximum number of field lines in a head. Apache and hyper allow 100; clients and gateways send 10 to 40.
  public var maxFields: Int
  /// The maximum length of one line of the head in bytes, with its end.
  public var lineBytes: Int

  /// Creates the limits.
  ///
  /// - Parameter lineBytes: The limit on one line; `nil` means as much as the whole head.
  public init(headBytes: Int = 64 * 1024, maxFields: Int = 100, lineBytes: Int? = nil) {
    self.headBytes = headBytes
    self.maxFields = maxFields
    self.lineBytes = lineBytes ?? headBytes
  }

  /// The maximum number of empty lines before a request line. Old clients end a body with one that its length does not
  /// count (RFC 9112, section 2.2); the second is a reserve.
  static let emptyLines = 2
  /// The maximum length of a chunk-size line in bytes: 16 digits and room for an extension or two.
  static let chunkLineBytes = 256
  /// The maximum size of all chunk extensions of one message in bytes, so that tiny chunks with large extensions cost
  /// their sender more than the receiver.
  static let chunkExtensionBytes = 16 * 1024
  /// The maximum length of a method in bytes. The longest registered one has 17 (`UPDATEREDIRECTREF`).
  public static let methodBytes = 32
  /// The maximum length of a host with its port in bytes. A name in the DNS has at most 253, and its last dot, a colon
  /// and a port have 7 more.
  static let hostBytes = 260
  /// The maximum number of options in the `Connection` lines. Each is compared with every field.
  static let connectionOptions = 32
}
