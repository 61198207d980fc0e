import Crypto
import FoundationEssentials
import Idempotency
import NIOCore

/// The bytes of one sealed value: version (1 byte), coding (1), the secret's name (4), nonce (12), ciphertext, tag (16).
///
/// AES-256-GCM authenticates version, coding, kind, the record's id and the status along with the content, so that
/// nothing in a store can be put into another record or another place, and opened there.
struct Envelope {
  /// The parts of a record that are sealed, each for itself. The numbers are authenticated and never change.
  enum Kind: UInt8 {
    case response = 1
    case location = 2
  }

  /// The steps by which the content was encoded.
  struct Coding: OptionSet {
    let rawValue: UInt8
    static let sealed = Coding(rawValue: 1)
    /// The client's key was one of the inputs.
    static let bound = Coding(rawValue: 2)
  }

  enum Fault: Error, Equatable { case otherFormat, broken }

  static let version: UInt8 = 1
  private static let headLength = 6
  private static let nonceLength = 12
  private static let tagLength = 16

  let coding: Coding
  /// The name of the secret that sealed the content.
  let secretName: UInt32
  private let sealed: ByteBuffer

  /// Parses an envelope; the content stays closed.
  init(_ bytes: ByteBuffer) throws(Fault) {
    var bytes = bytes
    guard let version = bytes.readInteger(as: UInt8.self), version == Self.version,
      let coding = bytes.readInteger(as: UInt8.self).map(Coding.init(rawValue:)), coding.contains(.sealed),
      coding.isSubset(of: [.sealed, .bound]), let name = bytes.readInteger(as: UInt32.self),
      bytes.readableBytes >= Self.nonceLength + Self.tagLength
    else { throw .otherFormat }
    self.coding = coding
    secretName = name
    sealed = bytes
  }

  /// The content.
  ///
  /// - Parameter place: The place at which the envelope was found.
  func open(under key: SymmetricKey, at place: Place) throws(Fault) -> ByteBuffer {
    let opened = sealed.withUnsafeReadableBytes { bytes -> ByteBuffer? in
      let end = bytes.count - Self.tagLength
      let content = UnsafeRawBufferPointer(rebasing: bytes[Self.nonceLength..<end])
      guard
        let nonce = try? AES.GCM.Nonce(data: UnsafeRawBufferPointer(rebasing: bytes[..<Self.nonceLength])),
        let box = try? AES.GCM.SealedBox(
          nonce: nonce, ciphertext: content, tag: UnsafeRawBufferPointer(rebasing: bytes[end...])),
        let plain = try? AES.GCM.open(box, using: key, authenticating: place.authenticated(coding))
      else { return nil }
      return ByteBuffer(bytes: plain)
    }
    guard let opened else { throw .broken }
    return opened
  }

  /// The envelope of a content, with a random nonce.
  static func seal(
    _ content: ByteBuffer, by secret: SealingSecret, under key: SymmetricKey, isBound: Bool, at place: Place
  ) throws -> ByteBuffer {
    let coding: Coding = isBound ? [.sealed, .bound] : .sealed
    let box = try content.withUnsafeReadableBytes { bytes in
      try AES.GCM.seal(bytes, using: key, authenticating: place.authenticated(coding))
    }
    var envelope = ByteBufferAllocator().buffer(
      capacity: headLength + nonceLength + content.readableBytes + tagLength)
    envelope.writeInteger(version)
    envelope.writeInteger(coding.rawValue)
    envelope.writeInteger(secret.name)
    envelope.writeBytes(box.nonce)
    envelope.writeBytes(box.ciphertext)
    envelope.writeBytes(box.tag)
    return envelope
  }

  /// The place of a value in a store.
  struct Place {
    let id: RecordID
    let kind: Kind
    let status: Int

    func authenticated(_ coding: Coding) -> [UInt8] {
      var bytes: [UInt8] = [Envelope.version, coding.rawValue, kind.rawValue]
      bytes.append(UInt8(truncatingIfNeeded: status >> 8))
      bytes.append(UInt8(truncatingIfNeeded: status))
      for index in 0..<32 { bytes.append(id.digest[index]) }
      return bytes
    }
  }
}
