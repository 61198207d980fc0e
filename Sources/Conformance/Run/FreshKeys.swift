import Crypto
import Platform
import Wire

/// Keys that no run has used before: UUIDs of version 4, from the system's random numbers.
enum FreshKeys {
  static func make(_ names: [String]) -> [String: String] {
    var entropy = Entropy()
    return Dictionary(uniqueKeysWithValues: names.map { ($0, uuid(entropy.next(), entropy.next())) })
  }

  static func uuid(_ high: UInt64, _ low: UInt64) -> String {
    let digits = (high & ~0xF000 | 0x4000).hexText + (low & ~(0b11 << 62) | 0b10 << 62).hexText
    var text = ""
    for (index, digit) in digits.enumerated() {
      if [8, 12, 16, 20].contains(index) { text.append("-") }
      text.append(digit)
    }
    return text
  }
}

/// The texts by which a refusal would give away the first request: its payload's own, and its digests.
enum Confidential {
  static func texts(of payloads: Payloads) -> [String] {
    payloads.confidential + [
      hexadecimal(SHA256.hash(data: payloads.first)), hexadecimal(Insecure.SHA1.hash(data: payloads.first)),
      hexadecimal(Insecure.MD5.hash(data: payloads.first)),
    ]
  }

  private static func hexadecimal(_ digest: some Sequence<UInt8>) -> String {
    digest.map(\.hexText).joined()
  }
}
