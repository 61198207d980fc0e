import NIOCore
import Wire

extension Target {
  /// The header of the PROXY protocol: it means the same wherever it is cut, and addresses have one spelling.
  static func proxyHeaderFault(in bytes: [UInt8]) -> String? {
    var whole = ByteBuffer(bytes: bytes)
    let found = Result { try ProxyHeader.read(&whole) }
    var trickled = ByteBuffer()
    for (count, byte) in bytes.enumerated() {
      trickled.writeInteger(byte)
      let header: ProxyHeader?
      do { header = try ProxyHeader.read(&trickled) } catch {
        guard case .failure = found else { return "only the cut header is refused" }
        return nil
      }
      guard let header else { continue }
      guard (try? found.get()) == header, whole.readableBytes == bytes.count - count - 1 else {
        return "cutting changes the meaning: \(found) / \(header)"
      }
      return addressFault(header)
    }
    guard case .success(nil) = found else { return "only the whole header is read or refused: \(found)" }
    return nil
  }

  private static func addressFault(_ header: ProxyHeader) -> String? {
    guard case .client(let address) = header, !address.isEmpty else { return nil }
    guard let again = try? SocketAddress(ipAddress: address, port: 0).ipAddress, again == address else {
      return "an address has another spelling: \(address)"
    }
    return nil
  }
}
