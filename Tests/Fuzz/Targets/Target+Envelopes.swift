import FoundationEssentials
import Idempotency
import NIOCore

@testable import Store

extension Target {
  private static let codec = OutcomeCodec(
    secrets: ["the secret of the fuzzer"], compression: .all, maxContent: 1 << 20)

  /// Sealed outcomes as a stranger may have changed them, and the content that is within.
  static func envelopesFault(in bytes: [UInt8]) -> String? {
    guard let digest = Digest256(repeatElement(1, count: 32)) else { return "an id of another length" }
    let (id, buffer) = (RecordID(digest), ByteBuffer(bytes: bytes))
    let text = Data(bytes).base64EncodedString()
    for outcome in [
      EncodedOutcome(status: 200, location: nil, response: buffer),
      EncodedOutcome(status: 200, location: text, response: nil),
      EncodedOutcome(status: 200, location: String(decoding: bytes, as: UTF8.self), response: nil),
    ] {
      guard case .whole(let response) = try? codec.decoded(outcome, of: id, nil) else { continue }
      // A content that is only compressed is read without a secret.
      guard bytes.count > 1, bytes[1] & 1 == 0 else { return "bytes of a stranger were opened" }
      guard response.body.readableBytes <= 1 << 20 else { return "a content beyond the limit" }
    }
    guard let response = OutcomeCodec.response(200, buffer) else { return nil }
    return fault(of: response, id)
  }

  /// The difference that sealing and opening make to a response; `nil` if there is none.
  private static func fault(of response: RecordedResponse, _ id: RecordID) -> String? {
    do {
      guard case .encoded(let sealed) = try codec.encoded(.whole(response), of: id, nil) else {
        return "a response was not sealed"
      }
      return try codec.decoded(sealed, of: id, nil) == .whole(response) ? nil : "it is opened as another one"
    } catch {
      return "it is not opened: \(error)"
    }
  }
}
