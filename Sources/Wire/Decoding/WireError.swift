import NIOCore

/// The reason why bytes are not an acceptable message. The connection is closed after the response.
public enum WireError: UInt8, Error, Equatable, Sendable, CaseIterable {
  case badLineEnd
  case badRequestLine
  case badMethod
  case badTarget
  case unsupportedVersion
  case targetTooLong
  case headTooLarge
  case tooManyFields
  case badFieldName
  case spaceBeforeColon
  case foldedField
  case badFieldValue
  case badConnection
  case missingHost
  case repeatedHost
  case badHost
  case badContentLength
  case repeatedContentLength
  case lengthAndTransferCoding
  case badTransferCoding
  case unknownTransferCoding
  case transferCodingInHTTP10
  case badChunk
  case chunkExtensionsTooLong
  case forbiddenTrailer
  case badPath
  case badStatusLine
  case badPseudoField
}

extension WireError {
  /// The status of the response that refuses such a request. A fault in an upstream's response becomes a 502 instead.
  public var status: Int {
    switch self {
    case .targetTooLong: 414
    case .headTooLarge, .tooManyFields: 431
    case .unknownTransferCoding: 501
    case .unsupportedVersion: 505
    case .badStatusLine: 502
    default: 400
    }
  }

  /// One sentence for the log and for the detail of the refusal. It contains no part of the message.
  public var sentence: StaticString {
    switch self {
    case .badLineEnd: "A line does not end with CR LF."
    case .badRequestLine: "The request line is not a method, a target and a version."
    case .badMethod: "The method is not a token, or is too long."
    case .badTarget: "The request target is not one that the method may have."
    case .unsupportedVersion: "The version of HTTP is neither 1.0 nor 1.1."
    case .targetTooLong: "The request line is too long."
    case .headTooLarge: "The fields are too large."
    case .tooManyFields: "There are too many fields."
    case .badFieldName: "A field name is not a token."
    case .spaceBeforeColon: "White space stands before the colon of a field."
    case .foldedField: "A field is folded over several lines."
    case .badFieldValue: "A field value holds a control character."
    case .badConnection: "The Connection field is malformed or names too many fields."
    case .missingHost: "The Host field is missing."
    case .repeatedHost: "The Host field is repeated."
    case .badHost: "The host is malformed."
    case .badContentLength: "The Content-Length is not one number."
    case .repeatedContentLength: "The Content-Length is repeated."
    case .lengthAndTransferCoding: "There is both a Content-Length and a Transfer-Encoding."
    case .badTransferCoding: "The Transfer-Encoding is malformed."
    case .unknownTransferCoding: "The body has a transfer coding besides chunked."
    case .transferCodingInHTTP10: "HTTP/1.0 has no transfer codings."
    case .badChunk: "A chunk is malformed."
    case .chunkExtensionsTooLong: "The chunk extensions are too long."
    case .forbiddenTrailer: "A field that must stand in the head stands in the trailer."
    case .badPath: "The path is malformed, or has an encoded slash, a backslash or a NUL in it."
    case .badStatusLine: "The status line is malformed."
    case .badPseudoField: "The pseudo-header fields are not those of a request."
    }
  }
}

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

/// The rules for fields after a chunked body, which are refused, dropped or kept.
enum Trailers {
  /// Fields that frame or route the message or end the connection, and that cause the whole message to be refused:
  /// their sender wants two readers to see different messages.
  private static let refused = FieldNameSet(.connection, .contentLength, .host, .transferEncoding)

  /// Fields that are not allowed in trailers (RFC 9110, section 6.5.1) and are dropped: those of one hop, of
  /// authentication, of the content's form or of the treatment of the request.
  private static let dropped: FieldNameSet = [
    .hopByHop, .ownRequest, .ownResponse,
    FieldNameSet(
      .authorization, .cacheControl, .contentEncoding, .contentType, .contentLength, .cookie, .date, .expect,
      .idempotencyKey,
      .location, .prefer, .retryAfter, .setCookie, .via, .xForwardedFor, .xForwardedHost, .xForwardedProto),
  ]

  /// The refused fields in a response's trailers. `Content-Length` is not among them: after a complete body it does no
  /// harm, and refusing the response would make the outcome unknown.
  private static let refusedInResponses = FieldNameSet(.connection, .host, .transferEncoding)

  /// The field lines to forward, each ended by CRLF.
  ///
  /// - Parameter bytes: The whole trailer section.
  static func lines(
    _ fields: [MessageHead.Field], in bytes: ByteBuffer, ofResponse: Bool
  ) throws(WireError) -> ByteBuffer {
    if fields.isEmpty { return ByteBuffer() }
    let refused = ofResponse ? refusedInResponses : refused
    for field in fields where refused.contains(field.name) { throw .forbiddenTrailer }
    let section = MessageHead(bytes: bytes, start: .status(0, reason: 0..<0), minorVersion: 1, fields: fields)
    var output = ByteBuffer()
    section.copyFields(into: &output, omitting: dropped)
    return output
  }
}
