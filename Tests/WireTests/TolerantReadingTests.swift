import NIOCore
import TestSupport
import Testing
import Wire
import WireOracle

/// The broken rules for which a backend is still read, and those for which it is not.
struct TolerantReadingTests {
  private static let ok = "HTTP/1.1 200 OK\r\n"
  private static let chunked = "\(ok)Transfer-Encoding: chunked\r\n\r\n"

  /// The bytes, the fields as they are forwarded, the body, and whether a protected request may follow.
  static let tolerated: [(bytes: String, fields: [String], body: String, isCertain: Bool)] = [
    (
      "\(ok)Transfer-Encoding: chunked\r\nX: 1\r\ntransfer-encoding: Chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
      ["Transfer-Encoding: chunked", "X: 1"], "hi", false
    ),
    (
      "\(ok)Content-Length: 2\r\nX: 1\r\nContent-Length: 2\r\n\r\nhi", ["Content-Length: 2", "X: 1"], "hi",
      false
    ),
    ("\(ok)Content-Length: 2, 2\r\n\r\nhi", ["Content-Length: 2"], "hi", false),
    ("\(ok)Content-Length: 2 ,\t2\r\ncontent-length:\t2\r\n\r\nhi", ["Content-Length: 2"], "hi", false),
    ("\(ok)Content-Length:\t2\t\r\nX:\t1\r\n\r\nhi", ["Content-Length: 2", "X: 1"], "hi", true),
    ("\(ok)Transfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n", ["Transfer-Encoding: chunked"], "", true),
    (
      "\(ok)Server : x\r\nX-A \t: 1\r\nContent-Length: 0\r\n\r\n",
      ["Server: x", "X-A: 1", "Content-Length: 0"], "", true
    ),
    ("\(ok)Content-Length : 2\r\n\r\nhi", ["Content-Length: 2"], "hi", false),
    (
      "\(ok)X: a\r\n b\r\n\t c \r\nContent-Length: 2\r\n\r\nhi", ["X: a b c", "Content-Length: 2"], "hi",
      false
    ),
    ("\(ok)Content-Length: 0\r\nX: \r\n  a: b\r\n\r\n", ["Content-Length: 0", "X: a: b"], "", false),
    ("\(ok)Content-Length: 0\r\nX: \t a\t \r\n \tb\r\n\r\n", ["Content-Length: 0", "X: a b"], "", false),
    (
      "\(chunked) 2\t\r\nhi\r\n1 ; a = \"\\\"\\\\;\" ;b\t\r\n!\r\n 0 \r\n\r\n",
      ["Transfer-Encoding: chunked"], "hi!",
      true
    ),
  ]

  @Test(arguments: tolerated.indices)
  func `faults that leave a response one meaning are put right, wherever it is cut`(_ index: Int) {
    let (text, fields, body, isCertain) = Self.tolerated[index]
    let bytes = text.bytes
    for cuts in [[], Array(0...bytes.count)] + (0...bytes.count).map({ [$0] }) {
      let (decoded, end) = Decoded.response(bytes, cuts: cuts, reading: .tolerant)
      #expect(decoded.error == nil && end == .idle, "\(decoded)")
      #expect(decoded.messages.map(\.fields) == [fields], "cut at \(cuts)")
      #expect(decoded.messages.first?.body == body.bytes && decoded.messages.first?.isComplete == true)
      #expect(decoded.messages.first?.startLine.hasSuffix(" doubtful") == !isCertain, "\(decoded)")
    }
    let verdict = ResponseReading.check(bytes, to: .get)
    // A tab before another field's value is no fault.
    #expect(verdict == .repaired, "\(verdict)")
  }

  @Test func `trailers are put right in the same way`() {
    let (decoded, end) = Decoded.response(
      "\(Self.chunked)0\r\nX-Sum : 1\r\nX-Note: a\r\n b\r\n\r\n".bytes, reading: .tolerant)
    #expect(decoded.messages.first?.trailers == "X-Sum: 1\r\nX-Note: a b\r\n" && end == .idle)
  }

  /// Also refused by the tolerant reading, with their status.
  static let ambiguous: [(String, WireError)] = [
    ("\(ok)Content-Length: 1\r\nContent-Length: 2\r\n\r\nhi", .repeatedContentLength),
    ("\(ok)Content-Length: 1, 2\r\n\r\nhi", .badContentLength),
    ("\(ok)Content-Length: 2,\r\n\r\nhi", .badContentLength),
    ("\(ok)Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n", .lengthAndTransferCoding),
    (
      "\(ok)Content-Length: 2\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
      .lengthAndTransferCoding
    ),
    ("\(ok)Transfer-Encoding: chunked, chunked\r\n\r\n", .badTransferCoding),
    ("\(ok)Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\n", .badTransferCoding),
    ("\(ok)Transfer-Encoding: gzip, chunked\r\n\r\n", .unknownTransferCoding),
    ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", .transferCodingInHTTP10),
    ("HTTP/1.1 200 OK\nContent-Length: 0\n\n", .badLineEnd),
    ("\(ok)Content-Length: 0\nX: 1\r\n\r\n", .badLineEnd),
    ("\(ok)X: a\u{1}b\r\n\r\n", .badFieldValue),
    ("\(ok)X: a\r\n b\u{1}\r\n\r\n", .badFieldValue),
    ("\(ok)X: a\rb\r\n\r\n", .badFieldValue),
    ("\(ok)X(y): a\r\n\r\n", .badFieldName),
    ("\(ok)X y : a\r\n\r\n", .spaceBeforeColon),
    ("\(ok): a\r\n\r\n", .badFieldName),
    ("\(ok) X: a\r\n\r\n", .foldedField),
    ("\(ok)X: a\r\n \t\r\n\r\n", .foldedField),
    ("\(ok)Content-Length:\r\n 2\r\n\r\nhi", .foldedField),
    ("\(ok)Transfer-Encoding: chunked\r\n , gzip\r\n\r\n", .foldedField),
    ("\(chunked)2 2\r\nhi\r\n0\r\n\r\n", .badChunk),
    ("\(chunked) \r\nhi\r\n0\r\n\r\n", .badChunk),
    ("\(chunked)2;a=\"\\\r\nhi\r\n0\r\n\r\n", .badChunk),
    ("\(chunked)2;\r\nhi\r\n0\r\n\r\n", .badChunk),
    ("\(chunked)2\nhi\r\n0\r\n\r\n", .badChunk),
    ("\(chunked)\(String(repeating: " ", count: 300))2\r\nhi\r\n", .chunkExtensionsTooLong),
  ]

  @Test(arguments: ambiguous)
  func `what stays ambiguous is refused, and has its status`(_ text: String, _ error: WireError) {
    let (decoded, end) = Decoded.response(text.bytes, reading: .tolerant)
    #expect(decoded.error == error && decoded.status == 200 && end == .truncated, "\(decoded)")
  }

  @Test(arguments: [
    "220 mail.example ESMTP\r\n\r\n", "HTTP/1.1 2", "HTTP/1.1 103 Early\r\nX(y): a\r\n\r\n",
    "\r\nHTTP/1.1 200 OK\r\n\r\n",
  ])
  func `before a final status line there is no status`(text: String) {
    let (decoded, end) = Decoded.response(text.bytes, reading: .tolerant)
    #expect(decoded.status == nil && end == .truncated, "\(decoded)")
  }

  /// Some thousand responses of pieces that are in order and pieces that are not.
  @Test(arguments: 1...4 as ClosedRange<UInt64>)
  func `what the tolerant reading puts right means the same to all others`(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var counts: [String: Int] = [:]
    for _ in 0..<1500 {
      let bytes = Self.response(&random)
      let verdict = ResponseReading.check(bytes, to: .get)
      if case .broken(let fault) = verdict {
        Issue.record("\(fault) in \(String(decoding: bytes, as: UTF8.self).debugDescription)")
      }
      counts["\(verdict)", default: 0] += 1
    }
    for verdict in ["strict", "repaired", "refused"] {
      #expect(counts[verdict, default: 0] > 40, "\(counts)")
    }
  }

  private static func response(_ random: inout SeededGenerator) -> [UInt8] {
    func one(_ choices: [String]) -> String { choices.randomElement(using: &random) ?? "" }
    let isChunked = Bool.random(using: &random)
    let framing =
      isChunked
      ? ["Transfer-Encoding: chunked", "Transfer-Encoding:\tchunked ", "Transfer-Encoding : chunked"]
      : ["Content-Length: 3", "Content-Length:\t3", "Content-Length: 3, 3", "Content-Length : 3"]
    let others = [
      "X: 1", "X : 1", "X: a\r\n b", "X:\r\n\tb", "Server: s", " folded", "X: a\u{1}", "Content-Length: 4",
      "X y: 1", "\t",
    ]
    var lines = [one(framing)]
    if Int.random(in: 0..<3, using: &random) == 0 { lines.append(one(framing)) }
    for _ in 0..<Int.random(in: 0..<3, using: &random) {
      lines.insert(one(Array(others.prefix(Bool.random(using: &random) ? 5 : 10))), at: lines.count / 2)
    }
    let size = one(["3", "3", " 3", "3 ", "3 ; a = b", "3;a=\"\\\"\"", "3;", "0003", "x"])
    let body =
      isChunked ? "\(size)\r\nabc\r\n0\(one(["", " ", ";a"]))\r\n\(one(["", "X : 1\r\n"]))\r\n" : "abc"
    return ("\(ok)\(lines.joined(separator: "\r\n"))\r\n\r\n\(body)").bytes
  }
}
