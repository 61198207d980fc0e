import NIOCore
import Testing

@testable import Wire

/// The response head of HTTP/2.
struct HTTP2ResponseTests {
  private static func head(
    _ fields: [(String, String)], isEnd: Bool = false, to method: MessageHead.Method = .get
  ) throws(WireError) -> ResponseHead {
    try ResponseHead(
      http2: fields.map { (name: $0.0, value: $0.1) }, isEnd: isEnd, method: method, limits: HeadLimits())
  }

  @Test func `a response reads as one of HTTP 1`() throws {
    let response = try Self.head([(":status", "201"), ("content-length", "5"), ("x-a", " b\t")])
    #expect(response.head.status == 201)
    #expect(response.framing == .length(5))
    #expect(response.head.fields(named: "x-a").map { response.head.string($0.valueRange) } == ["b"])
    let text = String(buffer: response.head.bytes)
    #expect(text == "HTTP/1.1 201 \r\ncontent-length: 5\r\nx-a: b\r\n\r\n")
  }

  @Test(arguments: [
    ("200", MessageHead.Method.get, ResponseHead.Framing.chunked), ("200", .head, .none),
    ("204", .get, .none),
    ("304", .get, .none), ("103", .get, .none),
  ])
  func `a response's body ends with the stream`(
    status: String, method: MessageHead.Method, framing: ResponseHead.Framing
  ) throws {
    #expect(try Self.head([(":status", status)], to: method).framing == framing)
  }

  static let refused: [[(String, String)]] = [
    [], [("x-a", "b")], [("x-a", "b"), (":status", "200")], [(":status", "20")], [(":status", "+20")],
    [(":status", "101")], [(":status", "099")], [(":status", "200"), (":status", "200")],
    [(":status", "200"), (":path", "/")], [(":status", "200"), ("X-A", "b")],
    [(":status", "200"), ("connection", "close")], [(":status", "200"), ("transfer-encoding", "chunked")],
    [(":status", "200"), ("content-length", "5"), ("content-length", "6")],
    [(":status", "200"), ("content-length", "-1")], [(":status", "200"), ("x-a", "b\r\nx-b: c")],
    [(":status", "200"), ("x a", "b")], [(":status", "200"), ("", "b")],
  ]

  @Test(arguments: refused.indices)
  func `an ambiguous response is refused`(index: Int) {
    #expect(throws: WireError.self) { try Self.head(Self.refused[index]) }
  }

  @Test func `an interim response does not end the stream`() {
    #expect(throws: WireError.badStatusLine) { try Self.head([(":status", "103")], isEnd: true) }
  }

  @Test func `trailers follow the rules of HTTP 1`() throws {
    let lines = try HTTP2Trailers.responseLines(
      [
        (name: "grpc-status", value: "0"), (name: "set-cookie", value: "a=b"),
        (name: "content-length", value: "1"),
      ],
      limits: HeadLimits())
    #expect(String(buffer: lines) == "grpc-status: 0\r\n")
    #expect(throws: WireError.forbiddenTrailer) {
      try HTTP2Trailers.responseLines([(name: "host", value: "a")], limits: HeadLimits())
    }
    #expect(throws: WireError.badPseudoField) {
      try HTTP2Trailers.responseLines([(name: ":status", value: "200")], limits: HeadLimits())
    }
  }
}
