import NIOCore

/// A header of the PROXY protocol, versions 1 and 2: a load balancer's description of a connection, which precedes the
/// client's first byte.
public enum ProxyHeader: Equatable, Sendable {
  /// The connection is the balancer's own, such as a health check: the header names no client.
  case local
  /// The load balancer does not know the client of the connection.
  case unknown
  /// The client's IP address in canonical text, or the empty string for a Unix socket.
  case client(address: String)

  /// The bytes are not a header of the PROXY protocol, or the header is too long.
  public struct Malformed: Error, Equatable, Sendable {}

  /// Removes a header from the front of the bytes and returns it; `nil` if more bytes are needed.
  public static func read(_ input: inout ByteBuffer) throws(Malformed) -> ProxyHeader? {
    guard let first = input.getInteger(at: input.readerIndex, as: UInt8.self) else { return nil }
    return first == signature[0] ? try readBinary(&input) : try readText(&input)
  }
}

// Version 1: `PROXY TCP4 192.0.2.1 192.0.2.2 51234 443` and CRLF.
extension ProxyHeader {
  /// The maximum length of a line with its CRLF, in bytes, as the protocol specifies it.
  private static let longestLine = 107

  private static func readText(_ input: inout ByteBuffer) throws(Malformed) -> ProxyHeader? {
    let bytes = input.readableBytesView.prefix(longestLine)
    guard let end = bytes.firstIndex(of: ASCII.lineFeed) else {
      guard bytes.count < longestLine, "PROXY ".utf8.starts(with: bytes.prefix(6)) else { throw Malformed() }
      return nil
    }
    guard end > bytes.startIndex, bytes[end - 1] == ASCII.carriageReturn else { throw Malformed() }
    let line = String(decoding: bytes[..<(end - 1)], as: UTF8.self)
    input.moveReaderIndex(to: end + 1)
    let words = line.split(separator: " ", omittingEmptySubsequences: false)
    guard words.count >= 2, words[0] == "PROXY" else { throw Malformed() }
    // Anything after UNKNOWN is ignored, as the protocol requires.
    if words[1] == "UNKNOWN" { return .unknown }
    guard words.count == 6, isPort(words[4]), isPort(words[5]) else { throw Malformed() }
    _ = try address(words[3], words[1])
    return .client(address: try address(words[2], words[1]))
  }

  /// The address in canonical text, so that one client has one spelling. The protocol knows no zone (`%eth0`).
  private static func address(_ text: Substring, _ family: Substring) throws(Malformed) -> String {
    let isVersion6 = text.utf8.contains(UInt8(ascii: ":"))
    guard family == (isVersion6 ? "TCP6" : "TCP4"), let address = IPAddress(String(text)) else {
      throw Malformed()
    }
    return address.text
  }

  /// Whether the word is a decimal number up to 65535 without a sign and without leading zeros.
  private static func isPort(_ word: Substring) -> Bool { UInt16(word).map { String($0) == word } ?? false }
}

// Version 2: a signature, a command, a family, a length, addresses and extensions.
extension ProxyHeader {
  private static let signature: [UInt8] = [
    0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A,
  ]
  /// The maximum length of addresses and extensions, in bytes. Addresses take at most 216; the longest extension that
  /// load balancers add is a client's certificate.
  private static let longestRest = 4096
  /// The length of a Unix socket's two addresses, in bytes.
  private static let unixAddresses = 216

  private static func readBinary(_ input: inout ByteBuffer) throws(Malformed) -> ProxyHeader? {
    let start = input.readerIndex
    guard signature.starts(with: input.readableBytesView.prefix(signature.count)) else { throw Malformed() }
    guard let command = input.getInteger(at: start + 12, as: UInt8.self),
      let family = input.getInteger(at: start + 13, as: UInt8.self),
      let length = input.getInteger(at: start + 14, as: UInt16.self)
    else { return nil }
    guard command == 0x20 || command == 0x21, length <= longestRest else { throw Malformed() }
    guard var rest = input.getSlice(at: start + 16, length: Int(length)) else { return nil }
    input.moveReaderIndex(forwardBy: 16 + Int(length))
    // The rest of a local connection's header is to be ignored.
    return command == 0x20 ? .local : try client(family, &rest)
  }

  /// The client by the address family and the transport protocol, each four bits.
  private static func client(_ family: UInt8, _ rest: inout ByteBuffer) throws(Malformed) -> ProxyHeader {
    switch family {
    case 0x00: return .unknown
    case 0x11: return .client(address: try source(addressBytes: 4, &rest).text)
    case 0x21: return .client(address: try source(addressBytes: 16, &rest).text)
    case 0x31:
      guard rest.readSlice(length: unixAddresses) != nil else { throw Malformed() }
      try skipExtensions(&rest)
      return .client(address: "")
    // A sender of datagrams has not opened this connection. A receiver may treat a protocol that it does not support as
    // unspecified.
    case 0x12, 0x22, 0x32: return .unknown
    default: throw Malformed()
    }
  }

  /// The first of two addresses, which are followed by two ports and by extensions.
  private static func source(addressBytes: Int, _ rest: inout ByteBuffer) throws(Malformed) -> IPAddress {
    guard let bytes = rest.readSlice(length: 2 * addressBytes + 4),
      let address = IPAddress(packed: bytes.readableBytesView.prefix(addressBytes))
    else { throw Malformed() }
    try skipExtensions(&rest)
    return address
  }

  /// Skips the extensions, each a type, a length of two bytes and a value: they fill the header exactly.
  private static func skipExtensions(_ rest: inout ByteBuffer) throws(Malformed) {
    while rest.readableBytes > 0 {
      guard rest.readInteger(as: UInt8.self) != nil, let length = rest.readInteger(as: UInt16.self),
        rest.readSlice(length: Int(length)) != nil
      else { throw Malformed() }
    }
  }
}
