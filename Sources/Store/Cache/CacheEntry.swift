import Idempotency
import NIOCore
import Wire

/// The head of one cached outcome, before its bytes. Bitwise copyable: the log reuses memory without deinitialising it.
struct CacheEntry: BitwiseCopyable {
  enum Content: BitwiseCopyable {
    /// The response's fields, body and trailers, which follow the head.
    case response
    case status
    /// A status, and the location in the place of the fields.
    case statusAndLocation
  }

  let id: RecordID
  let digest: Digest256
  let expiry: BootInstant
  let recordedAt: StoreInstant
  let expiresAt: StoreInstant
  let attempt: Int
  /// The entry's size in the log, with head and rounding, in bytes.
  let length: Int
  let status: Int32
  let fields: UInt32
  let body: UInt32
  let trailers: UInt32
  /// The index of its recipe among those of the log.
  let recipe: UInt8
  let content: Content
  /// Whether the entry was removed. Its space is freed when it is the oldest.
  var isDead = false

  init(
    _ id: RecordID, _ digest: Digest256, recipe: UInt8, _ record: CompletedRecord, expiry: BootInstant
  ) {
    self.id = id
    self.digest = digest
    self.recipe = recipe
    self.expiry = expiry
    recordedAt = record.recordedAt
    expiresAt = record.expiresAt
    attempt = record.attempt
    status = Int32(truncatingIfNeeded: record.outcome.status)
    let sizes: (fields: Int, body: Int, trailers: Int)
    switch record.outcome {
    case .whole(let response):
      content = .response
      sizes = (
        response.fields.readableBytes, response.body.readableBytes, response.trailers.readableBytes
      )
    case .statusOnly(_, let location):
      content = location == nil ? .status : .statusAndLocation
      sizes = (location?.utf8.count ?? 0, 0, 0)
    case .encoded: invariantBroken("an encoded outcome")
    }
    fields = UInt32(sizes.fields)
    body = UInt32(sizes.body)
    trailers = UInt32(sizes.trailers)
    length = CacheLog.rounded(MemoryLayout<CacheEntry>.stride + sizes.fields + sizes.body + sizes.trailers)
  }

  /// Whether the store may no longer hold the outcome. The millisecond of its reply may have begun before ours.
  func isExpired(now: BootInstant) -> Bool { now + 1 >= expiry }

  /// Copies the outcome's bytes to `memory`, which follows the head.
  func write(_ outcome: Outcome, to memory: UnsafeMutableRawPointer) {
    switch outcome {
    case .whole(let response):
      invariant(
        response.fields.readableBytes == Int(fields) && response.body.readableBytes == Int(body)
          && response.trailers.readableBytes == Int(trailers),
        "another outcome is copied than was measured")
      response.fields.copy(to: memory)
      response.body.copy(to: memory + Int(fields))
      response.trailers.copy(to: memory + Int(fields) + Int(body))
    case .statusOnly(_, var location?):
      location.withUTF8 { text in
        invariant(text.count == Int(fields), "another location is copied than was measured")
        if let start = text.baseAddress { memory.copyMemory(from: start, byteCount: text.count) }
      }
    case .statusOnly(_, nil), .encoded: break
    }
  }

  func outcome(from memory: UnsafeMutableRawPointer) -> Outcome {
    invariant(
      Int(fields) + Int(body) + Int(trailers) <= length - MemoryLayout<CacheEntry>.stride,
      "an entry is shorter than its parts")
    switch content {
    case .response:
      let (fields, body, trailers) = (Int(fields), Int(body), Int(trailers))
      var bytes = ByteBufferAllocator().buffer(capacity: fields + body + trailers)
      bytes.writeBytes(UnsafeRawBufferPointer(start: memory, count: fields + body + trailers))
      return .whole(
        RecordedResponse(
          status: Int(status), fields: bytes.slice(of: fields), body: bytes.slice(of: body),
          trailers: bytes.slice(of: trailers)))
    case .status:
      return .statusOnly(status: Int(status), location: nil)
    case .statusAndLocation:
      let text = UnsafeRawBufferPointer(start: memory, count: Int(fields))
      return .statusOnly(status: Int(status), location: String(decoding: text, as: UTF8.self))
    }
  }
}

extension ByteBuffer {
  fileprivate func copy(to memory: UnsafeMutableRawPointer) {
    withUnsafeReadableBytes { bytes in
      if let start = bytes.baseAddress { memory.copyMemory(from: start, byteCount: bytes.count) }
    }
  }

  /// The next bytes; an empty buffer, which does not retain this one's memory, if there are none.
  fileprivate mutating func slice(of length: Int) -> ByteBuffer {
    length > 0 ? readSlice(length: length) ?? ByteBuffer() : ByteBuffer()
  }
}
