import NIOCore
import Testing

@testable import Wire

/// The part of a list that is read, whatever its sender makes of it.
struct ListElementsTests {
  private static func head(_ fields: [(String, String)]) throws -> MessageHead {
    var head = try MessageHead(method: "POST", target: "/")
    for (name, value) in fields { try head.append(name: name, value: value) }
    return head
  }

  @Test(arguments: ["a,", ",", " ,", "abc , "])
  func `no more than 64 elements of a list are visited, empty ones included`(piece: String) {
    ByteBuffer(string: String(repeating: piece, count: 16_000)).withUnsafeReadableBytes { bytes in
      var elements = ListElements(bytes)
      var count = 0
      while elements.next() != nil { count += 1 }
      #expect(elements.visited == 64 && count <= 64)
      #expect(elements.isCut)
    }
  }

  @Test func `a list of 64 elements is read whole`() {
    ByteBuffer(string: (1...64).map { "a\($0)" }.joined(separator: ",")).withUnsafeReadableBytes { bytes in
      var elements = ListElements(bytes)
      var count = 0
      while elements.next() != nil { count += 1 }
      #expect(count == 64 && !elements.isCut)
    }
  }

  @Test func `a reader that has decided reads no further`() throws {
    let words = String(repeating: "a,", count: 1000)
    let head = try Self.head((0..<15).map { _ in ("X-HTTP-Method-Override", words) })
    var calls = 0
    let isWhole = head.readList(of: .methodOverrides) { _ in
      calls += 1
      return calls < 2
    }
    #expect(calls == 2 && !isWhole)
    calls = 0
    #expect(
      !head.readList(of: .methodOverrides) { _ in
        calls += 1
        return true
      })
    #expect(calls == 64)
  }

  @Test(arguments: [
    "Connection: \(String(repeating: ",", count: 65))x",
    "Connection: a\(String(repeating: ", ", count: 70))b",
  ])
  func `a Connection field of commas is refused`(line: String) {
    var decoder = RequestDecoder()
    var input = ByteBuffer(string: "GET / HTTP/1.1\r\nHost: a\r\n\(line)\r\n\r\n")
    #expect(throws: WireError.badConnection) { try decoder.next(&input) }
  }

  @Test func `credentials of too many elements may bind their connection`() throws {
    #expect(try Self.head([("Authorization", String(repeating: "a,", count: 65) + "b")]).bindsConnection)
    #expect(try !Self.head([("Authorization", "Digest a=1, b=2, c=3")]).bindsConnection)
  }

  @Test func `a client behind more proxies than there are is unknown`() throws {
    let first = try #require(IPAddress("10.0.0.0"))
    let block = try #require(AddressBlock(first, prefix: 104))
    let trusted = TrustedProxies(blocks: [block])
    func client(_ entries: Int) throws -> IPAddress? {
      let own = Array(repeating: "10.0.0.1", count: entries - 1)
      return trusted.client(
        in: try Self.head([("X-Forwarded-For", (["192.0.2.1"] + own).joined(separator: ","))]))
    }
    #expect(try client(32) == IPAddress("192.0.2.1"))
    #expect(try client(33) == nil)
    #expect(
      trusted.client(in: try Self.head([("X-Forwarded-For", String(repeating: ",", count: 40))])) == nil)
  }

  @Test func `a method and a host have the length of any that exist`() throws {
    _ = try MessageHead(method: String(repeating: "M", count: 32), target: "/")
    #expect(throws: WireError.badMethod) {
      try MessageHead(method: String(repeating: "M", count: 33), target: "/")
    }
    func host(_ count: Int) throws -> RequestHost? {
      try RequestHost(ByteBuffer(string: String(repeating: "h", count: count)))
    }
    #expect(try host(260) != nil)
    #expect(throws: WireError.badHost) { try host(261) }
  }

  @Test(arguments: [
    "\u{FFFD}", "aaaaaaa\u{FFFD}", "aaaaaaaa\u{FFFD}aaaaaaaaa", "ä\u{FFFD}", "ääääää\u{FFFC}\u{FFFD}",
  ])
  func `a value with bytes that are not UTF-8 is refused wherever they stand`(value: String) {
    #expect(throws: WireError.badFieldValue) { try HTTP2Fields.check(name: "x", value: value) }
  }

  @Test(arguments: ["", "a", "ää", "\u{FFFC}", "aaaaaaaaaaaa\u{FEFF}", "aaaaaaa\u{FFFC}aaaaaaaaa"])
  func `a value in UTF-8 is not`(value: String) throws {
    try HTTP2Fields.check(name: "x", value: value)
  }
}
