import Crypto
import FoundationEssentials
import Idempotency
import NIOCore
import Platform
import Synchronization
import Wire

/// The form of outcomes in a store: as they are, or encoded, which is compressed, sealed with the first of the store's
/// secrets, or both. Decoding does not depend on these settings: it reads every form for which the secret is there.
///
/// Pure but for its counters, and safe to use from any thread.
public final class OutcomeCodec: Sendable {
  /// The responses that are compressed, if that saves enough.
  public enum Compression: Sendable {
    case none
    /// Responses that are not sealed, because a compressed response's length reveals more about its content.
    case unsealed
    case all
  }

  /// Stores outcomes as they are.
  public static let plain = OutcomeCodec()

  static let otherFormat = "the recorded response has another format than this version of Semel reads"
  static let lostSecret =
    "the recorded response was sealed with a secret that is not among store.encryption.secret_files"
  static let broken =
    "the recorded response cannot be opened: it was damaged, or belongs to another record"
  static let damaged = "the recorded response cannot be decompressed: it was damaged"
  static let tooLarge = "the recorded response states a length beyond that of any response"

  /// The maximum length of a response: the limit of `max_response_body`, with fields and trailers. It does not follow
  /// the configuration: what was recorded before a limit was lowered stays readable.
  public static let maxContent = (2 << 30) + (1 << 20)

  /// The minimum size of a body that is compressed, in bytes. Compressing less costs more than it saves.
  public static let minCompressedBody = 4096

  private let secrets: [SealingSecret]
  private let minBody: Int
  private let maxContent: Int
  let expansions = ExpansionTurns()
  let pool: any WorkPool
  private let plainBytes = Atomic<Int>(0)
  private let storedBytes = Atomic<Int>(0)

  /// - Parameters:
  ///   - secrets: The secrets of `store.encryption`, the one that seals first.
  ///   - compression: The responses that are compressed. All that are in the store are decompressed.
  ///   - maxContent: The length that a compressed record may state for its content, in bytes. It bounds what a hostile
  ///     record makes this process allocate.
  ///   - pool: The threads on which what is large is encoded and decoded.
  public init(
    secrets: [Secret] = [], compression: Compression = .none, maxContent: Int = OutcomeCodec.maxContent,
    pool: any WorkPool = SharedThreads.shared
  ) {
    self.pool = pool
    self.secrets = secrets.map(SealingSecret.init)
    self.maxContent = maxContent
    let compresses =
      switch compression {
      case .none: false
      case .unsealed: secrets.isEmpty
      case .all: true
      }
    minBody = compresses ? Self.minCompressedBody : .max
  }

  var compresses: Bool { minBody < .max }

  /// The bytes of all responses that were compressed so far, before and after.
  public var compressedBytes: (plain: Int, stored: Int) {
    (plainBytes.load(ordering: .relaxed), storedBytes.load(ordering: .relaxed))
  }

  /// Whether the outcome is certainly stored as it is: one comparison for a small response, if nothing is sealed.
  func keepsAsIs(_ outcome: Outcome) -> Bool {
    guard secrets.isEmpty else { return false }
    guard case .whole(let response) = outcome else { return true }
    return !mayCompress(response)
  }

  private func mayCompress(_ response: RecordedResponse) -> Bool {
    guard response.body.readableBytes >= minBody else { return false }
    return Self.contentLength(of: response) <= maxContent && response.isCompressible
  }

  /// The outcome as it is stored.
  ///
  /// - Parameter key: The client's key; `nil` for an operator's outcome.
  public func encoded(
    _ outcome: Outcome, of id: RecordID, _ key: IdempotencyKey?
  ) throws(StoreError) -> Outcome {
    guard !keepsAsIs(outcome) else { return outcome }
    let sealer = secrets.first.map { Sealer($0, id, key, status: outcome.status) }
    do {
      switch outcome {
      case .whole(let response): return try encoded(response, by: sealer)
      case .statusOnly(let status, let location?):
        return .encoded(
          EncodedOutcome(status: status, location: try sealer?.text(location), response: nil))
      case .statusOnly(_, nil), .encoded: return outcome
      }
    } catch {
      // A response that cannot be sealed must not be stored in clear.
      throw .unavailable("a response could not be sealed: \(error)")
    }
  }

  private func encoded(_ response: RecordedResponse, by sealer: Sealer?) throws -> Outcome {
    let content = Self.content(of: response)
    let compressed = mayCompress(response) ? PackedContent(compressing: content) : nil
    if let compressed {
      plainBytes.wrappingAdd(content.readableBytes, ordering: .relaxed)
      storedBytes.wrappingAdd(compressed.bytes.readableBytes, ordering: .relaxed)
    }
    if let sealer {
      return .encoded(
        EncodedOutcome(
          status: response.status, location: try response.location.map(sealer.text),
          response: try sealer.seal(compressed ?? PackedContent(content), .response)))
    }
    invariant(secrets.isEmpty, "a response is stored in clear that is to be sealed")
    guard let compressed else { return .whole(response) }
    return .encoded(
      EncodedOutcome(
        status: response.status, location: response.location.map(Envelope.text),
        response: Envelope.unsealed(compressed)))
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
      return .whole(response)
    }
    guard let text = outcome.location else { return .statusOnly(status: outcome.status, location: nil) }
    guard let bytes = Data(base64Encoded: text) else { throw .unreadable(Self.otherFormat) }
    guard let location = try open(ByteBuffer(bytes: bytes), .location, of: outcome, id, key) else {
      return .encoded(outcome)
    }
    return .statusOnly(status: outcome.status, location: String(buffer: location))
  }

  private func open(
    _ bytes: ByteBuffer, _ kind: Envelope.Kind, of outcome: EncodedOutcome, _ id: RecordID,
    _ key: IdempotencyKey?
  ) throws(StoreError) -> ByteBuffer? {
    guard let envelope = try? Envelope(bytes) else { throw .unreadable(Self.otherFormat) }
    guard envelope.coding.contains(.sealed) else {
      // Without a seal, only what is compressed is encoded, and the location beside it.
      guard (kind == .response) == envelope.coding.contains(.compressed) else {
        throw .unreadable(Self.otherFormat)
      }
      return try expanded(envelope.payload, envelope)
    }
    let named = secrets.filter { $0.name == envelope.secretName }
    guard !named.isEmpty else { throw .unreadable(Self.lostSecret) }
    let isBound = envelope.coding.contains(.bound)
    if isBound, key == nil { return nil }
    let place = Envelope.Place(id: id, kind: kind, status: outcome.status)
    for secret in named {
      let recordKey = secret.recordKey(id, isBound ? key : nil)
      guard let content = try? envelope.open(under: recordKey, at: place) else { continue }
      return try expanded(content, envelope)
    }
    throw .unreadable(Self.broken)
  }

  private func expanded(_ content: ByteBuffer, _ envelope: Envelope) throws(StoreError) -> ByteBuffer {
    guard let length = envelope.plainLength else { return content }
    guard length <= maxContent else { throw .unreadable(Self.tooLarge) }
    guard let plain = ZstandardFrame.content(of: content, length: Int(length)) else {
      throw .unreadable(Self.damaged)
    }
    return plain
  }
}

extension Envelope {
  /// A location that is not sealed, as text without spaces.
  fileprivate static func text(_ location: String) -> String {
    Data(unsealed(PackedContent(ByteBuffer(string: location))).readableBytesView).base64EncodedString()
  }
}

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

  func seal(_ content: PackedContent, _ kind: Envelope.Kind) throws -> ByteBuffer {
    try Envelope.seal(
      content, by: secret, under: recordKey, isBound: isBound,
      at: Envelope.Place(id: id, kind: kind, status: status))
  }

  func text(_ location: String) throws -> String {
    let content = PackedContent(ByteBuffer(string: location))
    return Data(try seal(content, .location).readableBytesView).base64EncodedString()
  }
}

// The content of a response: the lengths of fields and trailers (4 bytes each, in network byte order), fields,
// trailers, body.
extension OutcomeCodec {
  static func content(of response: RecordedResponse) -> ByteBuffer {
    let (fields, trailers) = (response.fields.readableBytes, response.trailers.readableBytes)
    var content = ByteBufferAllocator().buffer(capacity: contentLength(of: response))
    content.writeInteger(UInt32(fields))
    content.writeInteger(UInt32(trailers))
    content.writeImmutableBuffer(response.fields)
    content.writeImmutableBuffer(response.trailers)
    content.writeImmutableBuffer(response.body)
    invariant(
      content.readableBytes == contentLength(of: response), "a response is encoded in another length")
    return content
  }

  private static func contentLength(of response: RecordedResponse) -> Int {
    8 + response.fields.readableBytes + response.trailers.readableBytes + response.body.readableBytes
  }

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
