import Crypto
import FoundationEssentials
import Idempotency
import NIOCore

/// The form of outcomes in a store: as they are, or sealed with the first of its secrets. Each of the secrets opens, and
/// an outcome that was stored as it is stays readable.
///
/// Pure, and safe to use from any thread.
public final class OutcomeCodec: Sendable {
  /// Stores outcomes as they are.
  public static let plain = OutcomeCodec()

  static let otherFormat = "the recorded response has another format than this version of Semel reads"
  static let lostSecret =
    "the recorded response was sealed with a secret that is not among store.encryption.secret_files"
  static let broken =
    "the recorded response cannot be opened: it was damaged, or belongs to another record"

  private let secrets: [SealingSecret]

  /// - Parameter secrets: The secrets of `store.encryption`, the one that seals first.
  public init(secrets: [Secret] = []) { self.secrets = secrets.map(SealingSecret.init) }

  /// Whether outcomes are stored as they are.
  public var isPlain: Bool { secrets.isEmpty }

  /// The outcome as it is stored.
  ///
  /// - Parameters:
  ///   - id: The record.
  ///   - key: The client's key; `nil` for an operator's outcome.
  public func encoded(
    _ outcome: Outcome, of id: RecordID, _ key: IdempotencyKey?
  ) throws(StoreError) -> Outcome {
    guard let secret = secrets.first else { return outcome }
    let sealer = Sealer(secret, id, key, status: outcome.status)
    do {
      switch outcome {
      case .kept(let response):
        return .encoded(
          EncodedOutcome(
            status: response.status, location: try response.location.map(sealer.text),
            response: try sealer.seal(Self.content(of: response), .response)))
      case .notKept(let status, let location?):
        return .encoded(
          EncodedOutcome(status: status, location: try sealer.text(location), response: nil))
      case .notKept(_, nil), .encoded: return outcome
      }
    } catch {
      // Nothing is stored in clear instead.
      throw .unavailable("a response could not be sealed: \(error)")
    }
  }

  /// The outcome as it was recorded; the encoded one if it takes the client's key, and that is not given.
  public func decoded(
    _ outcome: EncodedOutcome, of id: RecordID, _ key: IdempotencyKey?
  ) throws(StoreError) -> Outcome {
    if let bytes = outcome.response {
      guard let content = try open(bytes, .response, of: outcome, id, key) else { return .encoded(outcome) }
      guard let response = Self.response(outcome.status, content) else {
        throw .unreadable(Self.otherFormat)
      }
      return .kept(response)
    }
    guard let text = outcome.location else { return .notKept(status: outcome.status, location: nil) }
    guard let bytes = Data(base64Encoded: text) else { throw .unreadable(Self.otherFormat) }
    guard let location = try open(ByteBuffer(bytes: bytes), .location, of: outcome, id, key) else {
      return .encoded(outcome)
    }
    return .notKept(status: outcome.status, location: String(buffer: location))
  }

  private func open(
    _ bytes: ByteBuffer, _ kind: Envelope.Kind, of outcome: EncodedOutcome, _ id: RecordID,
    _ key: IdempotencyKey?
  ) throws(StoreError) -> ByteBuffer? {
    guard let envelope = try? Envelope(bytes) else { throw .unreadable(Self.otherFormat) }
    let named = secrets.filter { $0.name == envelope.secretName }
    guard !named.isEmpty else { throw .unreadable(Self.lostSecret) }
    let isBound = envelope.coding.contains(.bound)
    if isBound, key == nil { return nil }
    let place = Envelope.Place(id: id, kind: kind, status: outcome.status)
    for secret in named {
      let recordKey = secret.recordKey(id, isBound ? key : nil)
      if let content = try? envelope.open(under: recordKey, at: place) { return content }
    }
    throw .unreadable(Self.broken)
  }
}

/// The sealing of the parts of one record.
private struct Sealer {
  private let secret: SealingSecret
  private let recordKey: SymmetricKey
  private let id: RecordID
  private let isBound: Bool
  private let status: Int

  init(_ secret: SealingSecret, _ id: RecordID, _ key: IdempotencyKey?, status: Int) {
    self.secret = secret
    self.id = id
    self.status = status
    isBound = key != nil
    recordKey = secret.recordKey(id, key)
  }

  func seal(_ content: ByteBuffer, _ kind: Envelope.Kind) throws -> ByteBuffer {
    try Envelope.seal(
      content, by: secret, under: recordKey, isBound: isBound,
      at: Envelope.Place(id: id, kind: kind, status: status))
  }

  /// The location as text without spaces.
  func text(_ location: String) throws -> String {
    Data(try seal(ByteBuffer(string: location), .location).readableBytesView).base64EncodedString()
  }
}

// The content of a response: the lengths of fields and trailers (4 bytes each, in network byte order), fields,
// trailers, body.
extension OutcomeCodec {
  static func content(of response: RecordedResponse) -> ByteBuffer {
    let (fields, trailers) = (response.fields.readableBytes, response.trailers.readableBytes)
    var content = ByteBufferAllocator().buffer(
      capacity: 8 + fields + trailers + response.body.readableBytes)
    content.writeInteger(UInt32(fields))
    content.writeInteger(UInt32(trailers))
    content.writeImmutableBuffer(response.fields)
    content.writeImmutableBuffer(response.trailers)
    content.writeImmutableBuffer(response.body)
    return content
  }

  /// The response of a content, whose parts share the buffer's memory; `nil` if the lengths are wrong.
  static func response(_ status: Int, _ content: ByteBuffer) -> RecordedResponse? {
    var content = content
    guard let fieldsLength = content.readInteger(as: UInt32.self),
      let trailersLength = content.readInteger(as: UInt32.self),
      let fields = content.readSlice(length: Int(fieldsLength)),
      let trailers = content.readSlice(length: Int(trailersLength))
    else { return nil }
    return RecordedResponse(stored: status, fields: fields, body: content, trailers: trailers)
  }
}
