import NIOCore

/// A header of the PROXY protocol, versions 1 and 2: a load balancer's description of a connection, which precedes the
/// client's first byte.
public enum ProxyHeader: Equatable, Sendable {
  /// The connection is the balancer's own, such as a health check.
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
    guard words.count == 6, let family = family(words[1]), UInt16(words[4]) != nil, UInt16(words[5]) != nil
    else { throw Malformed() }
    _ = try address(String(words[3]), family)
    return .client(address: try address(String(words[2]), family))
  }

  private static func family(_ word: Substring) -> NIOBSDSocket.ProtocolFamily? {
    switch word {
    case "TCP4": .inet
    case "TCP6": .inet6
    default: nil
    }
  }

  /// The address in the system's spelling, so that one client has one spelling.
  private static func address(
    _ text: String, _ family: NIOBSDSocket.ProtocolFamily
  ) throws(Malformed) -> String {
    guard let parsed = try? SocketAddress(ipAddress: text, port: 0), parsed.protocol == family,
      let address = parsed.ipAddress
    else { throw Malformed() }
    return address
  }
}

// Version 2: a signature, a command, a family, a length, addresses and extensions.
extension ProxyHeader {
  private static let signature: [UInt8] = [
    0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A,
  ]
  /// The maximum length of addresses and extensions, in bytes. Addresses take at most 216; the longest extension that
  /// load balancers add is a client's certificate.
  private static let longestRest = 4096

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
    return command == 0x20 ? .local : try client(family: family >> 4, &rest)
  }

  private static func client(family: UInt8, _ rest: inout ByteBuffer) throws(Malformed) -> ProxyHeader {
    switch family {
    case 0: return .unknown
    case 1: return .client(address: try packed(4, &rest))
    case 2: return .client(address: try packed(16, &rest))
    case 3:
      guard rest.readableBytes >= 216 else { throw Malformed() }
      return .client(address: "")
    default: throw Malformed()
    }
  }

  /// The first of two addresses of `size` bytes each, which are followed by two ports.
  private static func packed(_ size: Int, _ rest: inout ByteBuffer) throws(Malformed) -> String {
    guard rest.readableBytes >= 2 * size + 4, let bytes = rest.readSlice(length: size),
      let address = try? SocketAddress(packedIPAddress: bytes, port: 0).ipAddress
    else { throw Malformed() }
    return address
  }
}
