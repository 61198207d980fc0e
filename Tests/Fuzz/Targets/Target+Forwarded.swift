import Wire

@testable import Settings

extension Target {
  private static let trusted = TrustedProxies(
    blocks: ["10.0.0.0/8", "2001:db8::/32"].compactMap { try? AddressBlock.parse($0) })

  /// Values of `X-Forwarded-For`, a field each: addresses and blocks have one spelling, and nothing that stands left of
  /// what an untrusted address has sent counts.
  static func forwardedFault(in bytes: [UInt8]) -> String? {
    let texts = bytes.split(separator: 0x0A).map { String(decoding: $0, as: UTF8.self) }
    for text in texts {
      if let fault = addressFault(text) ?? blockFault(text) { return fault }
    }
    guard let stranger = IPAddress("192.0.2.1"),
      let behind = client(texts + ["192.0.2.1, 10.0.0.2"])
    else { return nil }
    guard behind == stranger else { return "a stranger's word is believed: \(behind.text)" }
    guard let found = client(texts) else { return nil }
    let listed = texts.joined(separator: ",").split(separator: ",").count
    return listed > 0 ? nil : "a client from nowhere: \(found.text)"
  }

  /// `nil` where no such head can be.
  private static func client(_ values: [String]) -> IPAddress? {
    let lines = values.map { "X-Forwarded-For: \($0)\n" }.joined()
    guard let sample = Sample(Array("GET / HTTP/1.1\n\(lines)\n".utf8)) else { return nil }
    return trusted.client(in: sample.head)
  }

  private static func addressFault(_ text: String) -> String? {
    guard let address = IPAddress(text) else { return nil }
    guard text.utf8.allSatisfy({ $0 == 0x2E || $0 == 0x3A || ASCII.hexValue($0) != nil }) else {
      return "an address of other characters: \(text)"
    }
    return IPAddress(address.text) == address ? nil : "an address is another one when written: \(text)"
  }

  private static func blockFault(_ text: String) -> String? {
    guard let block = try? AddressBlock.parse(text) else { return nil }
    let bits = block.first.isIPv4 ? block.prefix - 96 : block.prefix
    let again = try? AddressBlock.parse("\(block.first.text)/\(bits)")
    return again == block ? nil : "a block is another one when written: \(text)"
  }
}
