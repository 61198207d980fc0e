import NIOCore
import Testing

@testable import Conformance

struct ResponseReaderTests {
  private static func response(_ outcome: Exchange.Outcome?) -> RawResponse? {
    if case .response(let response) = outcome { response } else { nil }
  }

  @Test func `responses are read from any pieces, interim ones passed over`() throws {
    var reader = ResponseReader(methods: ["POST", "POST"])
    let bytes =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nX-A: b\r\nTransfer-Encoding: chunked\r\n\r\n"
      + "3\r\nabc\r\n0\r\n\r\nHTTP/1.1 409 Conflict\r\nContent-Length: 2\r\n\r\nno"
    let outcomes = bytes.utf8.flatMap { reader.receive(ByteBuffer(bytes: [$0])) }
    try #require(outcomes.count == 2)
    let first = try #require(Self.response(outcomes[0]))
    #expect(first.status == 201 && first["x-a"] == "b" && first.text == "abc")
    #expect(Self.response(outcomes[1]).map { $0.status == 409 && $0.text == "no" } == true)
  }

  @Test func `a body without a length ends with its connection`() {
    var reader = ResponseReader(methods: ["GET"])
    #expect(reader.receive(ByteBuffer(string: "HTTP/1.1 200 OK\r\n\r\nabc")).isEmpty)
    #expect(Self.response(reader.finish("the connection ended").first)?.text == "abc")
  }

  @Test func `what is cut off is no response`() {
    var reader = ResponseReader(methods: ["POST", "POST"])
    #expect(reader.receive(ByteBuffer(string: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")).isEmpty)
    let expected = Exchange.Outcome.none("the connection ended before the response was complete")
    #expect(reader.finish("the connection ended") == [expected, expected])
    #expect(reader.finish("the connection ended").isEmpty)
  }

  @Test func `a body without end is none`() {
    var reader = ResponseReader(methods: ["POST", "POST"])
    let length = "Content-Length: 99999999999\r\n\r\n"
    #expect(reader.receive(ByteBuffer(string: "HTTP/1.1 201 Created\r\n" + length)).isEmpty)
    let piece = ByteBuffer(repeating: 0x78, count: 1 << 20)
    for _ in 0..<8 { #expect(reader.receive(piece).isEmpty) }
    #expect(reader.receive(piece) == [.endless("a body of more than 8 MiB")])
    #expect(reader.receive(piece).isEmpty)
    #expect(reader.finish("the connection ended").isEmpty)
  }

  @Test func `interim responses without end are none`() {
    var reader = ResponseReader(methods: ["POST"])
    let interim = ByteBuffer(string: "HTTP/1.1 100 Continue\r\n\r\n")
    for _ in 0..<64 { #expect(reader.receive(interim).isEmpty) }
    #expect(reader.receive(interim) == [.endless("more than 64 interim responses")])
  }

  @Test func `a response that is given up is endless, also where its body would end with the connection`() {
    var reader = ResponseReader(methods: ["GET", "GET"])
    #expect(reader.receive(ByteBuffer(string: "HTTP/1.1 200 OK\r\n\r\nabc")).isEmpty)
    #expect(reader.abandon("late") == [.endless("late"), .endless("late")])
    #expect(reader.finish("the connection ended").isEmpty)
  }

  @Test func `bytes that are no HTTP end the connection's responses`() {
    var reader = ResponseReader(methods: ["POST", "POST"])
    let outcomes = reader.receive(ByteBuffer(string: "<html>\r\n\r\n"))
    #expect(outcomes.count == 1)
    guard case .none(let reason)? = outcomes.first else {
      Issue.record("\(outcomes)")
      return
    }
    #expect(reason.hasPrefix("no HTTP response"))
    #expect(reader.receive(ByteBuffer(string: "HTTP/1.1 200 OK\r\n\r\n")).isEmpty)
  }
}
