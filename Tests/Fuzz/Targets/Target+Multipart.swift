import Wire

@testable import Idempotency

extension Target {
  /// A media type in the first line, and behind it a body: parts are told apart, and with another boundary they are
  /// the same parts.
  static func multipartFault(in bytes: [UInt8]) -> String? {
    let type = bytes.prefix { $0 != 0x0A }
    let body = Array(bytes.dropFirst(type.count + 1))
    guard let sample = Sample(contentType: type, body: body[...]),
      let media = MediaType.of(sample.head), media.kind == .multipart,
      let boundary = media.boundary(in: sample.head)
    else { return nil }
    return body.withUnsafeBytes { raw in
      guard let multipart = Multipart(raw, boundary: boundary) else { return nil }
      var position = 0
      var other: [UInt8] = []
      for part in multipart.parts {
        guard part.fields.lowerBound >= position, part.content.lowerBound >= part.fields.upperBound else {
          return "parts overlap"
        }
        position = part.content.upperBound
        other += "--\(substitute)\r\n".utf8
        if !part.fields.isEmpty { other += Array(raw[part.fields]) + "\r\n".utf8 }
        other += "\r\n".utf8 + Array(raw[part.content]) + "\r\n".utf8
      }
      if case .once(let content) = multipart.field(named: "key", in: raw),
        !multipart.parts.contains(where: { $0.content == content })
      {
        return "a field's content is no part's"
      }
      other += "--\(substitute)--\r\n".utf8
      guard position <= body.count else { return "a part ends behind the body" }
      return substituteFault(sample, of: body, other)
    }
  }

  private static let substitute = "another-boundary"

  private static func substituteFault(_ sample: Sample, of body: [UInt8], _ other: [UInt8]) -> String? {
    guard !String(decoding: body, as: UTF8.self).contains(substitute),
      let changed = Sample(
        contentType: "multipart/form-data; boundary=\(substitute)".utf8, body: other[...])
    else { return nil }
    return changed.digest() == sample.digest() ? nil : "another boundary makes another fingerprint"
  }
}
