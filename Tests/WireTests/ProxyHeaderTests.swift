import NIOCore
import Testing
import Wire

struct ProxyHeaderTests {
  private static let signature: [UInt8] = [13, 10, 13, 10, 0, 13, 10, 81, 85, 73, 84, 10]
  private static let ports: [UInt8] = [0xC8, 0x00, 0x01, 0xBB]

  private static func binary(_ command: UInt8, _ family: UInt8, _ rest: [UInt8]) -> [UInt8] {
    signature + [command, family, UInt8(rest.count >> 8), UInt8(rest.count & 0xFF)] + rest
  }

  @Test(arguments: [
    ("PROXY TCP4 192.0.2.1 198.51.100.7 51200 443\r\n", ProxyHeader.client(address: "192.0.2.1")),
    ("PROXY TCP6 2001:DB8::0:1 ::1 1 65535\r\n", .client(address: "2001:db8::1")),
    ("PROXY TCP6 ::ffff:192.0.2.1 ::1 1 2\r\n", .client(address: "192.0.2.1")),
    ("PROXY UNKNOWN\r\n", .unknown), ("PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", .unknown),
  ]) func `a line names the client`(line: String, expected: ProxyHeader) throws {
    var bytes = ByteBuffer(string: line + "GET / ")
    #expect(try ProxyHeader.read(&bytes) == expected)
    #expect(String(buffer: bytes) == "GET / ")
  }

  @Test(arguments: [
    (binary(0x21, 0x11, [192, 0, 2, 1, 198, 51, 100, 7] + ports), ProxyHeader.client(address: "192.0.2.1")),
    (
      binary(
        0x21, 0x21,
        [0x20, 1, 0xD, 0xB8] + Array(repeating: 0, count: 11) + [1] + Array(repeating: 9, count: 16) + ports),
      .client(address: "2001:db8::1")
    ),
    (binary(0x21, 0x31, Array(repeating: 0, count: 216)), .client(address: "")),
    (binary(0x20, 0x00, []), .local),
    (binary(0x20, 0x11, [192, 0, 2, 1, 198, 51, 100, 7] + ports), .local),
    // Of a local connection everything else is ignored.
    (binary(0x20, 0xFF, [4, 0, 9]), .local),
    // Datagrams are valid, and not supported.
    (binary(0x21, 0x12, [192, 0, 2, 1, 198, 51, 100, 7] + ports), .unknown),
    (binary(0x21, 0x22, Array(repeating: 1, count: 36)), .unknown),
    (binary(0x21, 0x32, Array(repeating: 1, count: 216)), .unknown),
    // An IPv4 client on an IPv6 socket.
    (
      binary(
        0x21, 0x21,
        Array(repeating: 0, count: 10) + [255, 255, 192, 0, 2, 1] + Array(repeating: 9, count: 16) + ports),
      .client(address: "192.0.2.1")
    ),
    (binary(0x21, 0x00, [1, 2, 3]), .unknown),
    // With two extensions behind the addresses.
    (
      binary(0x21, 0x11, [10, 0, 0, 1, 10, 0, 0, 2] + ports + [3, 0, 4, 1, 2, 3, 4, 4, 0, 0]),
      .client(address: "10.0.0.1")
    ),
  ]) func `a binary header names the client, too`(header: [UInt8], expected: ProxyHeader) throws {
    var bytes = ByteBuffer(bytes: header + [0x47])
    #expect(try ProxyHeader.read(&bytes) == expected)
    #expect(bytes.readableBytes == 1)
  }

  @Test(arguments: [
    Array("PROXY TCP4 192.0.2.1 198.51.100.7 51200 443\r\n".utf8),
    binary(0x21, 0x11, [192, 0, 2, 1, 198, 51, 100, 7] + ports),
  ]) func `the verdict is the same however the header is cut`(header: [UInt8]) throws {
    var bytes = ByteBuffer()
    for byte in header.dropLast() {
      bytes.writeInteger(byte)
      #expect(try ProxyHeader.read(&bytes) == nil)
    }
    bytes.writeInteger(header[header.count - 1])
    #expect(try ProxyHeader.read(&bytes) == .client(address: "192.0.2.1"))
    #expect(bytes.readableBytes == 0)
  }

  @Test(arguments: [
    "GET / HTTP/1.1\r\n", "PROXX", "PROXY\r\n", "PROXY \r\n", "PROXY TCP4\r\n",
    "PROXY TCP4 1.2.3.4 5.6.7.8 1 2\n",
    "PROXY TCP4 1.2.3.4 5.6.7.8 1 2 3\r\n", "PROXY TCP4 1.2.3.4  5.6.7.8 1 2\r\n",
    "PROXY TCP4 ::1 ::1 1 2\r\n",
    "PROXY TCP6 1.2.3.4 5.6.7.8 1 2\r\n", "PROXY TCP4 1.2.3 5.6.7.8 1 2\r\n",
    "PROXY TCP4 host 5.6.7.8 1 2\r\n",
    "PROXY TCP4 1.2.3.4 5.6.7.8 65536 2\r\n", "PROXY TCP4 1.2.3.4 5.6.7.8 1 -2\r\n", "proxy UNKNOWN\r\n",
    "PROXY TCP6 fe80::1%lo ::1 1 2\r\n", "PROXY TCP6 ::1 fe80::1%1 1 2\r\n",
    "PROXY TCP4 1.2.3.4\u{0} 5.6.7.8 1 2\r\n", "PROXY TCP4 1.2.3.4 5.6.7.8 +1 2\r\n",
    "PROXY TCP4 1.2.3.4 5.6.7.8 01 2\r\n", "PROXY TCP4 01.2.3.4 5.6.7.8 1 2\r\n",
    "PROXY UDP4 1.2.3.4 5.6.7.8 1 2\r\n", "PROXY UNKNOWN " + String(repeating: "x", count: 100),
  ]) func `an invalid line is refused`(line: String) {
    var bytes = ByteBuffer(string: line)
    #expect(throws: ProxyHeader.Malformed.self) { try ProxyHeader.read(&bytes) }
  }

  @Test(arguments: [
    [13, 10, 13, 11], binary(0x11, 0x11, Array(repeating: 0, count: 12)),
    binary(0x22, 0x11, Array(repeating: 0, count: 12)), binary(0x21, 0x11, Array(repeating: 0, count: 11)),
    binary(0x21, 0x21, Array(repeating: 0, count: 35)), binary(0x21, 0x31, Array(repeating: 0, count: 215)),
    binary(0x21, 0x41, Array(repeating: 0, count: 12)),
    // Families and protocols that are none.
    binary(0x21, 0x10, Array(repeating: 0, count: 12)), binary(0x21, 0x13, Array(repeating: 0, count: 12)),
    binary(0x21, 0x1F, Array(repeating: 0, count: 12)), binary(0x21, 0x20, Array(repeating: 0, count: 36)),
    binary(0x21, 0x01, []), binary(0x21, 0x02, []), binary(0x21, 0x30, Array(repeating: 0, count: 216)),
    // Extensions that end within the length, and that are longer than the header.
    binary(0x21, 0x11, Array(repeating: 0, count: 13)),
    binary(0x21, 0x11, Array(repeating: 0, count: 12) + [4, 0]),
    binary(0x21, 0x11, Array(repeating: 0, count: 12) + [4, 0, 1]),
    binary(0x21, 0x11, Array(repeating: 0, count: 12) + [4, 0, 0, 3, 0, 4, 1, 2, 3]),
    binary(0x21, 0x21, Array(repeating: 0, count: 36) + [1, 255, 255, 0]),
    binary(0x21, 0x31, Array(repeating: 0, count: 216) + [1]), signature + [0x21, 0x11, 0xFF, 0xFF],
  ]) func `an invalid binary header is refused`(header: [UInt8]) {
    var bytes = ByteBuffer(bytes: header)
    #expect(throws: ProxyHeader.Malformed.self) { try ProxyHeader.read(&bytes) }
  }
}
