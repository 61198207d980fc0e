/// How much of a message's head is held before it is refused.
public struct HeadLimits: Sendable, Equatable {
  /// The whole head, from the start line's first byte to the empty line. The trailer section has as much
  /// again.
  public var headBytes: Int
  /// Field lines in a head. 100 is what Apache and hyper allow; clients and gateways send 10 to 40.
  public var maxFields: Int
  /// One line of it, with its end.
  public var lineBytes: Int

  /// - Parameter lineBytes: `nil`: as much as the whole head.
  public init(headBytes: Int = 64 * 1024, maxFields: Int = 100, lineBytes: Int? = nil) {
    self.headBytes = headBytes
    self.maxFields = maxFields
    self.lineBytes = lineBytes ?? headBytes
  }

  /// Empty lines before a request line. Old clients end a body with one that its length does not count
  /// (RFC 9112, section 2.2); a second is patience enough.
  static let emptyLines = 2
  /// A chunk-size line: 16 digits and room for an extension or two.
  static let chunkLineBytes = 256
  /// All chunk extensions of one message, so that tiny chunks with large extensions cost their sender more
  /// than us.
  static let chunkExtensionBytes = 16 * 1024
  /// Options that the `Connection` lines may list: each costs a look at every field.
  static let connectionOptions = 32
}
