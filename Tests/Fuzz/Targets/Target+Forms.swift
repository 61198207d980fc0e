import NIOCore
import Wire

@testable import Idempotency

extension Target {
  /// A form, or a query: the pairs that enter a fingerprint and yield keys are those that the codec reads.
  static func formsFault(in bytes: [UInt8]) -> String? {
    let form = "application/x-www-form-urlencoded".utf8
    guard let sample = Sample(contentType: form, body: bytes[...]) else { return nil }
    let digest = sample.digest()
    guard sample.digest(body: "&".utf8 + bytes + "&&".utf8) == digest else { return "empty pairs count" }
    return pairsFault(bytes, .form) ?? pairsFault(bytes, .decoded)
  }

  private static func pairsFault(_ bytes: [UInt8], _ reading: PercentText.Reading) -> String? {
    var values: [String: [[UInt8]]] = [:]
    for pair in QueryPairs(ByteBuffer(bytes: bytes), form: reading == .form) {
      guard let name = String(validating: pair.name.readableBytesView, as: UTF8.self) else { continue }
      values[name, default: []].append(Array(pair.value.readableBytesView))
    }
    return bytes.withUnsafeBytes { text in
      for (name, expected) in values {
        switch FormPairs.find(name, in: text, as: reading) {
        case .absent: return "a pair is not found: \(name)"
        // Names that are the same text to Swift, in other bytes, are one to this table alone.
        case .repeated: if expected.count < 2 { return "a pair is found twice: \(name)" }
        case .once(let range):
          let value = PercentText(UnsafeRawBufferPointer(rebasing: text[range]), as: reading)
          guard expected.contains(Array(IteratorSequence(value))) else { return "another value of \(name)" }
        }
      }
      return nil
    }
  }
}
