import NIOCore
import Testing
import Wire
import WireOracle

/// The bytes that are refused, with their errors. The oracle accepts the first table's bytes and refuses the
/// second's.
struct StrictnessTests {
  private static let fields = "GET / HTTP/1.1\r\nHost: a\r\n"
  private static let chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"

  /// Stricter than llhttp, each for the reason that its error gives.
  static let beyondTheOracle: [(String, WireError)] = [
    ("\(fields)Content-Length:\t5\r\n\r\nhello", .badContentLength),
    ("\(fields)Transfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n", .badTransferCoding),
    ("\(fields)Transfer-Encoding:\r\n\r\n", .badTransferCoding),
    ("\(fields)Transfer-Encoding: gzip, chunked\r\n\r\n", .unknownTransferCoding),
    ("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", .badLineEnd),
    ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", .badTarget),
    ("GET / HTTP/1.1\r\n\r\n", .missingHost),
    ("\(fields)Host: a\r\n\r\n", .repeatedHost),
    ("GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", .repeatedHost),
    ("GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", .badHost),
    ("GET / HTTP/1.1\r\nHost: a,b\r\n\r\n", .badHost),
    ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", .badHost),
    ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", .badHost),
    ("GET / HTTP/1.1\r\nHost: %61\r\n\r\n", .badHost),
    ("GET / HTTP/1.1\r\nHost: a:b\r\n\r\n", .badHost),
    ("GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n", .badHost),
    ("GET / HTTP/1.1\r\nHost: :80\r\n\r\n", .badHost),
    ("GET / HTTP/1.1\r\nHost: .\r\n\r\n", .badHost),
    ("GET / HTTP/1.1\r\nHost: a..\r\n\r\n", .badHost),
    ("GET http://a..:80/ HTTP/1.1\r\nHost: a\r\n\r\n", .badHost),
    ("GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", .badHost),
    ("GET / HTTP/1.1\r\nHost: [fe80::1%25lo]\r\n\r\n", .badHost),
    ("GET / HTTP/1.1\r\nHost: [::1]x\r\n\r\n", .badHost),
    ("GET /#x HTTP/1.1\r\nHost: a\r\n\r\n", .badTarget),
    ("GET * HTTP/1.1\r\nHost: a\r\n\r\n", .badTarget),
    ("GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", .badTarget),
    ("GET http://a@b/ HTTP/1.1\r\nHost: a\r\n\r\n", .badHost),
    ("CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n", .badTarget),
    ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", .transferCodingInHTTP10),
    ("\(fields)Connection: a b\r\n\r\n", .badConnection),
    ("\(fields)Connection: \((1...33).map { "x\($0)" }.joined(separator: ","))\r\n\r\n", .badConnection),
    ("\r\n\r\n\r\n\(fields)\r\n", .badLineEnd),
    ("\(chunked)0\r\nConnection: close\r\n\r\n", .forbiddenTrailer),
    ("\(chunked)0\r\nHost: b\r\n\r\n", .forbiddenTrailer),
    ("\(chunked)00000000000000001\r\nx\r\n0\r\n\r\n", .badChunk),
    ("\(chunked)1;\(String(repeating: "x", count: 256))\r\nx\r\n0\r\n\r\n", .chunkExtensionsTooLong),
  ]

  /// Refused by both.
  static let byBoth: [(String, WireError)] = [
    ("\(chunked)0\r\nContent-Length: 3\r\n\r\n", .forbiddenTrailer),
    ("GET / HTTP/1.1\nHost: a\n\n", .badLineEnd),
    ("GET / HTTP/1.1\r\nHost: a\n\r\n", .badLineEnd),
    ("GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", .badFieldValue),
    ("GET / HTTP/1.1\r\nHost: a\r\nX: a\u{0}b\r\n\r\n", .badFieldValue),
    ("GET / HTTP/1.1\r\nHost: a\r\nX: 12345678\u{1}12345678\r\n\r\n", .badFieldValue),
    ("GET / HTTP/1.1\r\nHost: a\r\nX: a\u{7F}\r\n\r\n", .badFieldValue),
    ("\(fields)X : b\r\n\r\n", .spaceBeforeColon),
    ("\(fields)X: b\r\n c\r\n\r\n", .foldedField),
    ("\(fields): b\r\n\r\n", .badFieldName),
    ("\(fields)X\r\n\r\n", .badFieldName),
    ("\(fields)X(: b\r\n\r\n", .badFieldName),
    ("\(fields)X\u{e9}: b\r\n\r\n", .badFieldName),
    ("G(T / HTTP/1.1\r\nHost: a\r\n\r\n", .badMethod),
    (" / HTTP/1.1\r\nHost: a\r\n\r\n", .badRequestLine),
    ("GET\r\nHost: a\r\n\r\n", .badMethod),
    ("GET /\r\nHost: a\r\n\r\n", .badRequestLine),
    ("GET /\u{FFFD} HTTP/1.1\r\nHost: a\r\n\r\n", .badTarget),
    ("GET /\u{1} HTTP/1.1\r\nHost: a\r\n\r\n", .badTarget),
    ("GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", .badRequestLine),
    ("GET a HTTP/1.1\r\nHost: a\r\n\r\n", .badTarget),
    ("GET / HTTP/1.1 \r\nHost: a\r\n\r\n", .badRequestLine),
    ("GET / http/1.1\r\nHost: a\r\n\r\n", .badRequestLine),
    ("GET / HTTP/1.2\r\nHost: a\r\n\r\n", .unsupportedVersion),
    ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", .unsupportedVersion),
    ("\(fields)Content-Length: +5\r\n\r\nhello", .badContentLength),
    ("\(fields)Content-Length: -5\r\n\r\nhello", .badContentLength),
    ("\(fields)Content-Length:\r\n\r\nhello", .badContentLength),
    ("\(fields)Content-Length: 5, 5\r\n\r\nhello", .badContentLength),
    ("\(fields)Content-Length: 5 5\r\n\r\nhello", .badContentLength),
    ("\(fields)Content-Length: 0x5\r\n\r\nhello", .badContentLength),
    ("\(fields)Content-Length: 18446744073709551616\r\n\r\nhello", .badContentLength),
    ("\(fields)Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", .repeatedContentLength),
    ("\(fields)Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", .lengthAndTransferCoding),
    ("\(fields)Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", .lengthAndTransferCoding),
    ("\(fields)Content-Length: 5\t\r\n\r\nhello", .badContentLength),
    ("\(fields)Transfer-Encoding: chunked \t\r\n\r\n0\r\n\r\n", .badTransferCoding),
    ("\(fields)Transfer-Encoding: gzip\r\n\r\n", .badTransferCoding),
    ("\(fields)Transfer-Encoding: chunked, gzip\r\n\r\n", .badTransferCoding),
    ("\(fields)Transfer-Encoding: identity\r\n\r\n", .badTransferCoding),
    ("\(fields)Transfer-Encoding: xchunked\r\n\r\n", .badTransferCoding),
    ("\(fields)Transfer-Encoding: chunked, gzip, chunked\r\n\r\n", .badTransferCoding),
    ("\(chunked)\r\n", .badChunk),
    ("\(chunked)+1\r\nx\r\n0\r\n\r\n", .badChunk),
    ("\(chunked)1 \r\nx\r\n0\r\n\r\n", .badChunk),
    ("\(chunked)0x1\r\nx\r\n0\r\n\r\n", .badChunk),
    ("\(chunked)10000000000000000\r\nx\r\n0\r\n\r\n", .badChunk),
    ("\(chunked)1\nx\r\n0\r\n\r\n", .badChunk),
    ("\(chunked)1;a\nx\r\n0\r\n\r\n", .badChunk),
    ("\(chunked)1; a\r\nx\r\n0\r\n\r\n", .badChunk),
    ("\(chunked)1\r\nxy\r\n0\r\n\r\n", .badChunk),
    ("\(chunked)1\r\nx\n0\r\n\r\n", .badChunk),
    ("\(chunked)0\r\nX: a\r\n b\r\n\r\n", .foldedField),
    ("\(chunked)0\r\nTransfer-Encoding: chunked\r\n\r\n", .forbiddenTrailer),
  ]

  @Test(arguments: beyondTheOracle)
  func `an ambiguous message is refused even if the oracle accepts it`(
    _ text: String, _ error: WireError
  ) {
    #expect(WireFuzz.check(text.bytes) == .stricter(error))
  }

  @Test(arguments: byBoth)
  func `a malformed message is refused`(_ text: String, _ error: WireError) {
    #expect(WireFuzz.check(text.bytes) == .refused(error))
  }

  @Test
  func `a decoder's error is final`() {
    var decoder = RequestDecoder()
    var input = ByteBuffer(string: "GET / HTTP/3.7\r\n\r\n")
    #expect(throws: WireError.unsupportedVersion) { try decoder.next(&input) }
    input = ByteBuffer(string: "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    #expect(throws: WireError.unsupportedVersion) { try decoder.next(&input) }
  }

  @Test
  func `a refusal has its cause's status`() {
    #expect(WireError.targetTooLong.status == 414)
    #expect(WireError.headTooLarge.status == 431)
    #expect(WireError.unknownTransferCoding.status == 501)
    #expect(WireError.unsupportedVersion.status == 505)
    #expect(WireError.repeatedHost.status == 400)
  }
}
