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
