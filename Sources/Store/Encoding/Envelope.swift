import CZstd
import Crypto
import FoundationEssentials
import Idempotency
import NIOCore
import Wire

/// The bytes of one encoded value: version (1 byte), coding (1), by the coding the content's length before it was
/// compressed (4), for a sealed one the secret's name (4) and the nonce (12); then the content as it is, compressed or
/// encrypted; for a sealed one the tag (16).
///
/// A content that is compressed *and* sealed was compressed first. AES-256-GCM authenticates version, coding, kind, the
/// record's id, the status and that length along with the content: nothing can be put elsewhere and opened there.
///
/// Earlier versions of Semel read the coding `sealed` alone, with or without `bound`, and refuse any other.
struct Envelope {
  /// The parts of a record that are encoded, each for itself. The numbers are authenticated and never change.
  enum Kind: UInt8 {
    case response = 1
    case location = 2
  }

  struct Coding: OptionSet {
    let rawValue: UInt8
    static let sealed = Coding(rawValue: 1)
    /// The client's key was one of the inputs.
    static let bound = Coding(rawValue: 2)
    static let compressed = Coding(rawValue: 4)

    fileprivate var isKnown: Bool {
      isSubset(of: [.sealed, .bound, .compressed]) && (contains(.sealed) || !contains(.bound))
    }
  }

  enum Fault: Error, Equatable { case otherFormat, broken }

  static let version: UInt8 = 1
  private static let maxHeadLength = 10
  private static let nonceLength = 12
  private static let tagLength = 16

  let coding: Coding
  /// The content's length before compression, in bytes; `nil` without.
  let plainLength: UInt32?
  /// The name of the secret that sealed the content; `nil` if it is not sealed.
  let secretName: UInt32?
  /// The content if it is not sealed; else what `open` opens.
  let payload: ByteBuffer

  init(_ bytes: ByteBuffer) throws(Fault) {
    var bytes = bytes
    guard let version = bytes.readInteger(as: UInt8.self), version == Self.version,
      let coding = bytes.readInteger(as: UInt8.self).map(Coding.init(rawValue:)), coding.isKnown
    else { throw .otherFormat }
    var plainLength: UInt32?
    if coding.contains(.compressed) {
      plainLength = bytes.readInteger()
      if plainLength == nil { throw .otherFormat }
    }
    var secretName: UInt32?
    if coding.contains(.sealed) {
      guard let name = bytes.readInteger(as: UInt32.self),
        bytes.readableBytes >= Self.nonceLength + Self.tagLength
      else { throw .otherFormat }
      secretName = name
    }
    self.coding = coding
    self.plainLength = plainLength
    self.secretName = secretName
    payload = bytes
  }

  /// The length that a compressed envelope states for its content; 0 for any other bytes.
  static func plainLength(of bytes: ByteBuffer) -> Int {
    let start = bytes.readerIndex
    guard bytes.readableBytes >= 6, bytes.getInteger(at: start, as: UInt8.self) == version,
      let coding = bytes.getInteger(at: start + 1, as: UInt8.self).map(Coding.init(rawValue:)),
      coding.contains(.compressed)
    else { return 0 }
    return bytes.getInteger(at: start + 2, as: UInt32.self).map(Int.init) ?? 0
  }

  func open(under key: SymmetricKey, at place: Place) throws(Fault) -> ByteBuffer {
    let opened = payload.withUnsafeReadableBytes { bytes -> ByteBuffer? in
      let end = bytes.count - Self.tagLength
      let content = UnsafeRawBufferPointer(rebasing: bytes[Self.nonceLength..<end])
      guard
        let nonce = try? AES.GCM.Nonce(data: UnsafeRawBufferPointer(rebasing: bytes[..<Self.nonceLength])),
        let box = try? AES.GCM.SealedBox(
          nonce: nonce, ciphertext: content, tag: UnsafeRawBufferPointer(rebasing: bytes[end...])),
        let plain = try? AES.GCM.open(
          box, using: key, authenticating: place.authenticated(coding, plainLength))
      else { return nil }
      return ByteBuffer(bytes: plain)
    }
    guard let opened else { throw .broken }
    return opened
  }

  private static func head(_ coding: Coding, _ plainLength: UInt32?, capacity: Int) -> ByteBuffer {
    invariant(coding.isKnown, "a content is encoded as this version does not read it")
    invariant(
      coding.contains(.compressed) == (plainLength != nil),
      "the length before compression is stated of a content that was not compressed")
    var envelope = ByteBufferAllocator().buffer(capacity: maxHeadLength + capacity)
    envelope.writeInteger(version)
    envelope.writeInteger(coding.rawValue)
    if let plainLength { envelope.writeInteger(plainLength) }
    return envelope
  }

  static func unsealed(_ content: PackedContent) -> ByteBuffer {
    var envelope = head(
      content.plainLength == nil ? [] : .compressed, content.plainLength,
      capacity: content.bytes.readableBytes)
    envelope.writeImmutableBuffer(content.bytes)
    return envelope
  }

  static func seal(
    _ content: PackedContent, by secret: SealingSecret, under key: SymmetricKey, isBound: Bool,
    at place: Place
  ) throws -> ByteBuffer {
    var coding: Coding = isBound ? [.sealed, .bound] : .sealed
    if content.plainLength != nil { coding.insert(.compressed) }
    let box = try content.bytes.withUnsafeReadableBytes { bytes in
      try AES.GCM.seal(bytes, using: key, authenticating: place.authenticated(coding, content.plainLength))
    }
    var envelope = head(
      coding, content.plainLength, capacity: nonceLength + content.bytes.readableBytes + tagLength)
    envelope.writeInteger(secret.name)
    envelope.writeBytes(box.nonce)
    envelope.writeBytes(box.ciphertext)
    envelope.writeBytes(box.tag)
    return envelope
  }

  struct Place {
    let id: RecordID
    let kind: Kind
    let status: Int

    func authenticated(_ coding: Coding, _ plainLength: UInt32?) -> [UInt8] {
      var bytes: [UInt8] = [Envelope.version, coding.rawValue, kind.rawValue]
      bytes.append(UInt8(truncatingIfNeeded: status >> 8))
      bytes.append(UInt8(truncatingIfNeeded: status))
      for index in 0..<32 { bytes.append(id.digest[index]) }
      if let plainLength { withUnsafeBytes(of: plainLength.bigEndian) { bytes += $0 } }
      return bytes
    }
  }
}

/// One of the secrets that seal responses. Each record has a key of its own, made by HKDF with SHA-256 (RFC 5869) from
/// the secret, the record's id and the client's key, which a reader of the store and the secret lacks.
struct SealingSecret: Sendable {
  /// A name that is stored beside what the secret sealed.
  let name: UInt32
  private let root: SymmetricKey

  init(_ secret: Secret) {
    root = SymmetricKey(
      data: HKDF<SHA256>.extract(
        inputKeyMaterial: SymmetricKey(data: Array(secret.revealed.utf8)),
        salt: Array("semel encryption at rest, version 1".utf8)))
    let name = HKDF<SHA256>.expand(
      pseudoRandomKey: root, info: Array("name".utf8), outputByteCount: 4)
    self.name = name.withUnsafeBytes { UInt32(bigEndian: $0.loadUnaligned(as: UInt32.self)) }
  }

  /// The key of one record, with the client's key; `nil` for what an operator recorded.
  func recordKey(_ id: RecordID, _ key: IdempotencyKey?) -> SymmetricKey {
    var info = Array("record".utf8)
    info.append(key == nil ? 0 : 1)
    for index in 0..<32 { info.append(id.digest[index]) }
    if let key { info += key.bytes }
    return HKDF<SHA256>.expand(pseudoRandomKey: root, info: info, outputByteCount: 32)
  }
}

/// Compressed content as one frame of Zstandard (RFC 8878), with the content's length and a checksum.
enum ZstandardFrame {
  /// The fastest level but the negative ones. Level 3 takes twice as long for no more.
  private static let level: Int32 = 1

  /// The content as a frame; `nil` if the frame would be longer than `maxLength`, or if there is no memory.
  static func compressing(_ content: ByteBuffer, maxLength: Int) -> ByteBuffer? {
    guard maxLength > 0, let context = ZSTD_createCCtx() else { return nil }
    defer { ZSTD_freeCCtx(context) }
    for (parameter, value) in [(ZSTD_c_compressionLevel, level), (ZSTD_c_checksumFlag, 1)] {
      guard ZSTD_isError(ZSTD_CCtx_setParameter(context, parameter, value)) == 0 else { return nil }
    }
    var frame = ByteBufferAllocator().buffer(capacity: maxLength)
    let length = content.withUnsafeReadableBytes { source in
      frame.withUnsafeMutableWritableBytes { target in
        ZSTD_compress2(context, target.baseAddress, maxLength, source.baseAddress, source.count)
      }
    }
    guard ZSTD_isError(length) == 0 else { return nil }
    invariant(length <= maxLength, "a frame is longer than the room for it")
    frame.moveWriterIndex(forwardBy: length)
    return frame
  }

  /// The content of a frame; `nil` unless the bytes are exactly one sound frame of a content of `length` bytes. No more
  /// than these are allocated and written.
  static func content(of frame: ByteBuffer, length: Int) -> ByteBuffer? {
    let isOfLength = frame.withUnsafeReadableBytes { bytes in
      ZSTD_getFrameContentSize(bytes.baseAddress, bytes.count) == UInt64(length)
        && ZSTD_findFrameCompressedSize(bytes.baseAddress, bytes.count) == bytes.count
    }
    guard isOfLength, length > 0 else { return nil }
    var content = ByteBufferAllocator().buffer(capacity: length)
    let written = frame.withUnsafeReadableBytes { source in
      content.withUnsafeMutableWritableBytes { target in
        ZSTD_decompress(target.baseAddress, length, source.baseAddress, source.count)
      }
    }
    guard written == length else { return nil }
    content.moveWriterIndex(forwardBy: length)
    return content
  }
}

struct PackedContent {
  let bytes: ByteBuffer
  let plainLength: UInt32?

  init(_ content: ByteBuffer) {
    bytes = content
    plainLength = nil
  }

  /// Compresses a content; `nil` if less than a tenth would be saved.
  init?(compressing content: ByteBuffer) {
    let length = content.readableBytes
    guard let plainLength = UInt32(exactly: length),
      let frame = ZstandardFrame.compressing(content, maxLength: length - length / 10)
    else { return nil }
    bytes = frame
    self.plainLength = plainLength
  }
}
