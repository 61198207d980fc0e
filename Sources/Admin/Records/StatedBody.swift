import Foundation
import HTTPTypes
import NIOCore

/// A body as an operator states it: as text, or in Base64.
enum StatedBody {
  /// The bytes of a body; none if it is given in neither form.
  ///
  /// - Parameter prefix: The beginning of the members' names in a refusal, before `body` and `body_base64`.
  static func bytes(
    _ text: String?, base64: String?, in prefix: String = ""
  ) throws(AdminError) -> ByteBuffer {
    guard let base64 else { return ByteBuffer(string: text ?? "") }
    guard text == nil else {
      throw AdminError(
        .badRequest, "\(prefix)body and \(prefix)body_base64 are both given: give one of the two")
    }
    guard let data = Data(base64Encoded: base64) else {
      throw AdminError(
        .badRequest,
        "\(prefix)body_base64 must be Base64 (RFC 4648, section 4), padded and without line ends, such as eyJpZCI6MX0="
      )
    }
    return ByteBuffer(bytes: data)
  }
}
