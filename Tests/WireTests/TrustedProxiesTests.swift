import NIOCore
import Testing
import Wire

/// Addresses, blocks of them, and who is believed about a client.
struct TrustedProxiesTests {
  private static let trusted = TrustedProxies(
    blocks: [block("10.0.0.0", 96 + 8), block("2001:db8::", 32), block("127.0.0.1", 128)])

  private static func block(_ text: String, _ prefix: Int) -> AddressBlock {
    guard let address = IPAddress(text), let block = AddressBlock(address, prefix: prefix) else {
      preconditionFailure("no block: \(text)")
    }
    return block
  }

  @Test(arguments: [
    ("192.0.2.1", "192.0.2.1"), ("0.0.0.0", "0.0.0.0"), ("255.255.255.255", "255.255.255.255"),
    ("2001:DB8:0:0:0:0:0:1", "2001:db8::1"), ("::", "::"), ("::1", "::1"),
    ("::ffff:192.0.2.1", "192.0.2.1"), ("::FFFF:c000:0201", "192.0.2.1"), ("1::2:0:0:3", "1::2:0:0:3"),
  ]) func `an address has one spelling`(text: String, canonical: String) throws {
    let address = try #require(IPAddress(text))
    #expect(address.text == canonical)
    #expect(IPAddress(canonical) == address)
  }

  @Test(arguments: [
    "", "1.2.3", "1.2.3.4.5", "1.2.3.256", "01.2.3.4 ", "1.2.3.4/8", "unknown", "localhost", ":::", "1::2::3",
    "fe80::1%eth0", "[::1]", "12345::", "1.2.3.4:80", "1.2.3.4\0x", "::1\0",
    String(repeating: "1", count: 300),
  ]) func `an invalid address is refused`(text: String) { #expect(IPAddress(text) == nil) }

  @Test(arguments: [
    ("10.0.0.0", 104, "10.255.255.255", true), ("10.0.0.0", 104, "11.0.0.0", false),
    ("192.0.2.0", 121, "192.0.2.127", true), ("192.0.2.0", 121, "192.0.2.128", false),
    ("0.0.0.0", 96, "203.0.113.9", true), ("0.0.0.0", 96, "2001:db8::1", false),
    ("::", 0, "203.0.113.9", true), ("2001:db8::", 32, "2001:db8:ffff::1", true),
    ("2001:db8::", 32, "2001:db9::1", false), ("2001:db8:0:1::", 64, "2001:db8:0:1:ffff::", true),
    ("2001:db8:0:1::", 64, "2001:db8:0:2::", false), ("2001:db8::8", 125, "2001:db8::f", true),
    ("2001:db8::8", 125, "2001:db8::10", false), ("::1", 128, "::1", true), ("::1", 128, "::2", false),
  ]) func `a block contains the addresses with its prefix`(
    first: String, prefix: Int, address: String, isInside: Bool
  ) throws {
    #expect(Self.block(first, prefix).contains(try #require(IPAddress(address))) == isInside)
  }

  @Test func `a block begins with its first address`() throws {
    #expect(AddressBlock(try #require(IPAddress("10.0.0.1")), prefix: 104) == nil)
    #expect(AddressBlock(try #require(IPAddress("2001:db8::1")), prefix: 64) == nil)
  }

  @Test(arguments: [
    // Field lines, and the client as it is believed.
    (["203.0.113.9"], "203.0.113.9"), (["203.0.113.9, 10.1.1.1"], "203.0.113.9"),
    (["6.6.6.6, 203.0.113.9, 10.1.1.1, 10.2.2.2"], "203.0.113.9"),
    (["6.6.6.6", "203.0.113.9", "10.1.1.1"], "203.0.113.9"),
    // All are proxies: the left-most.
    (["10.3.3.3, 10.2.2.2"], "10.3.3.3"), (["2001:db8::7"], "2001:db8::7"),
    (["203.0.113.9,"], "203.0.113.9"),
    // Spellings that proxies write.
    (["2001:DB8:1::5, 10.1.1.1"], "2001:db8:1::5"), (["2a00::5, 10.1.1.1"], "2a00::5"),
    (["203.0.113.9:4711"], "203.0.113.9"), (["[2a00::5]:443, 10.1.1.1:80"], "2a00::5"),
    (["[2a00::5]"], "2a00::5"),
    (["::ffff:203.0.113.9"], "203.0.113.9"), (["6.6.6.6, ::ffff:10.1.1.1"], "6.6.6.6"),
    // The entries left of the client do not count.
    (["unknown, 203.0.113.9, 10.1.1.1"], "203.0.113.9"),
  ]) func `the client is the right-most address that is not a trusted proxy`(lines: [String], client: String)
    throws
  {
    #expect(Self.trusted.client(in: try Self.head(lines))?.text == client)
  }

  @Test(arguments: [
    [], [""], [" , ,"], ["unknown"], ["203.0.113.9, unknown"], ["203.0.113.9, unknown, 10.1.1.1"],
    ["_hidden"],
    ["203.0.113.9, 1.2.3.4.5, 10.1.1.1"], ["[2a00::5"], ["[203.0.113.9]"], ["203.0.113.9:"],
    ["203.0.113.9:x"],
    ["203.0.113.9:123456"],
  ]) func `a client without an address from a trusted proxy is unknown`(lines: [String]) throws {
    #expect(Self.trusted.client(in: try Self.head(lines)) == nil)
  }

  @Test func `a unix socket is trusted if configured`() throws {
    #expect(!Self.trusted.trusts(nil))
    let local = TrustedProxies(includesUnixSockets: true)
    #expect(local.trusts(nil) && !local.trusts(IPAddress("127.0.0.1")) && !local.isEmpty)
    #expect(local.client(in: try Self.head(["203.0.113.9"]))?.text == "203.0.113.9")
    #expect(local.client(in: try Self.head(["unknown"])) == nil)
    #expect(TrustedProxies().isEmpty)
  }

  private static func head(_ lines: [String]) throws -> MessageHead {
    let fields = lines.map { "X-Forwarded-For: \($0)\r\n" }.joined()
    var input = ByteBuffer(string: "GET / HTTP/1.1\r\nHost: h\r\n\(fields)\r\n")
    var decoder = RequestDecoder()
    guard case .head(let request) = try decoder.next(&input) else {
      throw WireError.badRequestLine
    }
    return request.head
  }
}
