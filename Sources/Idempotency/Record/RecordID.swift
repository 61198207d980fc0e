import NIOCore
import Wire

/// The identity under which a record is stored, made from caller, endpoint and key.
///
/// The backend receives it as `Idempotency-Request-Id`. It reveals nothing of its origin.
public struct RecordID: Hashable, Sendable, BitwiseCopyable {
  public var digest: Digest256

  public init(_ digest: Digest256) { self.digest = digest }

  /// The text for the backend and for the keys of a store: 43 characters of base64url.
  public var text: String { digest.text }
}

/// The scope of a key among the requests of one method.
public enum EndpointPlace: Sendable {
  /// All requests with one normalised path: `endpoint: path`.
  case path(ByteBuffer)
  /// All requests of one route, given by its name: `endpoint: route`.
  case route(String)
}

extension RecordID {
  /// The id of a record for a caller, an endpoint and a key.
  ///
  /// - Parameters:
  ///   - upstream: The configured name of the upstream.
  ///   - host: The request's host, `nil` for none. Its port makes no difference, and an address counts as none.
  ///   - identityKey: The key that makes the id an HMAC; `nil` for a SHA-256 digest.
  public static func make(
    caller: Caller, upstream: String, host: RequestHost?, method: ByteBuffer, place: EndpointPlace,
    key: IdempotencyKey, under identityKey: IdentityKey? = nil
  ) -> RecordID {
    RecordID(
      FramedHash.digest(under: identityKey) { hash in
        hash.byte(UInt8(ascii: "I"))
        // The version of this encoding. Another encoding would lead to other records.
        hash.number(1)
        caller.framed.withUnsafeBytes { hash.frame($0) }
        hash.frame(upstream)
        let name = host.map { $0.isAddress ? ByteBuffer() : $0.name } ?? ByteBuffer()
        name.withUnsafeReadableBytes { hash.frame($0) }
        method.withUnsafeReadableBytes { hash.frame($0) }
        switch place {
        case .path(let path):
          hash.byte(1)
          path.withUnsafeReadableBytes { hash.frame($0) }
        case .route(let name):
          hash.byte(2)
          hash.frame(name)
        }
        key.bytes.withUnsafeBytes { hash.frame($0) }
      })
  }

  /// The id of the record that a shadowed route keeps about the request. No protected route uses it.
  public var shadowed: RecordID {
    RecordID(
      FramedHash.digest { hash in
        hash.byte(UInt8(ascii: "S"))
        for index in 0..<32 { hash.byte(digest[index]) }
      })
  }

  /// Parses the text form of an id, as `text` returns it.
  public init?(text: String) {
    guard let digest = Digest256(text: text) else { return nil }
    self.init(digest)
  }
}
