import Idempotency
import NIOCore
import Wire

/// Writes commands of the Redis protocol directly into the memory of a buffer, numbers as ASCII and without a `String`.
/// A claim thus takes 0.5 µs. Bytes that do not fit are only counted, for `ByteBuffer.writeCommand` to make room.
struct RedisCommandWriter: ~Copyable {
  private let memory: UnsafeMutableRawBufferPointer
  private(set) var count = 0

  init(_ memory: UnsafeMutableRawBufferPointer) { self.memory = memory }

  private func fits(_ length: Int) -> Bool { count + length <= memory.count }

  mutating func byte(_ byte: UInt8) {
    if count < memory.count { memory[count] = byte }
    count += 1
  }

  mutating func bytes(_ bytes: UnsafeRawBufferPointer) {
    defer { count += bytes.count }
    guard fits(bytes.count), let source = bytes.baseAddress, let target = memory.baseAddress else { return }
    (target + count).copyMemory(from: source, byteCount: bytes.count)
  }

  mutating func bytes(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { self.bytes($0) }
  }

  // Inlined, so that a literal is a few stores.
  @inline(__always)
  mutating func literal(_ text: StaticString) {
    let length = text.utf8CodeUnitCount
    defer { count += length }
    guard fits(length), let target = memory.baseAddress else { return }
    (target + count).copyMemory(from: text.utf8Start, byteCount: length)
  }

  mutating func text(_ text: String) {
    let isWritten: Void? = text.utf8.withContiguousStorageIfAvailable { bytes(UnsafeRawBufferPointer($0)) }
    if isWritten == nil { for byte in text.utf8 { self.byte(byte) } }
  }

  mutating func buffer(_ buffer: ByteBuffer) {
    buffer.withUnsafeReadableBytes { bytes($0) }
  }

  mutating func number(_ number: some BinaryInteger) {
    if number < 0 { byte(0x2D) }
    unsigned(UInt64(number.magnitude))
  }

  private mutating func unsigned(_ number: UInt64) {
    // Most numbers are lengths of arguments.
    let length = number < 10 ? 1 : number < 100 ? 2 : Self.digits(number)
    defer { count += length }
    guard fits(length), let target = memory.baseAddress else { return }
    var rest = number
    var end = target + count + length
    // Two digits for each division.
    while rest >= 100 {
      end -= 2
      end.storeBytes(of: Self.pair(rest % 100), as: UInt16.self)
      rest /= 100
    }
    if rest >= 10 {
      (end - 2).storeBytes(of: Self.pair(rest), as: UInt16.self)
    } else {
      (end - 1).storeBytes(of: 0x30 + UInt8(truncatingIfNeeded: rest), as: UInt8.self)
    }
  }

  @inline(__always)
  private static func pair(_ number: UInt64) -> UInt16 {
    let tens = (number * 103) >> 10
    return UInt16(truncatingIfNeeded: 0x3030 + (tens | (number - tens * 10) << 8)).littleEndian
  }

  mutating func bigEndian(_ number: some FixedWidthInteger) {
    withUnsafeBytes(of: number.bigEndian) { bytes($0) }
  }

  mutating func digest(_ digest: Digest256) {
    defer { count += Digest256.textLength }
    guard fits(Digest256.textLength), let start = memory.baseAddress else { return }
    digest.writeText(to: (start + count).assumingMemoryBound(to: UInt8.self))
  }

  mutating func token(_ token: OwnerToken) {
    defer { count += 32 }
    guard fits(32), let target = memory.baseAddress else { return }
    token.high.writeHex(to: target + count)
    token.low.writeHex(to: target + count + 16)
  }

  private static func digits(_ number: UInt64) -> Int {
    var digits = 1
    var rest = number
    // Most numbers are lengths of two digits, or times of thirteen.
    while rest >= 10_000 {
      digits += 4
      rest /= 10_000
    }
    return digits + (rest >= 1000 ? 3 : rest >= 100 ? 2 : rest >= 10 ? 1 : 0)
  }
}

extension RedisCommandWriter {
  mutating func argument(length: Int) {
    byte(0x24)
    number(length)
    literal("\r\n")
  }

  /// Writes one argument, with room for a length of two digits, which most have; one of another length is moved.
  mutating func argument(_ body: (inout RedisCommandWriter) -> Void) {
    let start = count
    literal("$00\r\n")
    let first = count
    body(&self)
    let length = count - first
    let digits = Self.digits(UInt64(length))
    if digits != 2, fits(max(0, digits - 2)), let base = memory.baseAddress {
      (base + first + digits - 2).copyMemory(from: base + first, byteCount: length)
    }
    count = start
    argument(length: length)
    invariant(count == first + digits - 2, "an argument's length takes other room than was made for it")
    count += length
    literal("\r\n")
  }

  mutating func argument(_ number: Int64) {
    argument { $0.number(number) }
  }

  mutating func argument(_ text: String) {
    argument(length: text.utf8.count)
    self.text(text)
    literal("\r\n")
  }
}

extension ByteBuffer {
  mutating func writeCommand(capacity: Int, _ body: (inout RedisCommandWriter) -> Void) {
    var required = capacity
    var isComplete = false
    while !isComplete {
      writeWithUnsafeMutableBytes(minimumWritableBytes: required) { memory in
        var writer = RedisCommandWriter(memory)
        body(&writer)
        isComplete = writer.count <= memory.count
        required = writer.count
        return isComplete ? writer.count : 0
      }
    }
  }

  mutating func writeCommand(_ words: [String]) {
    let command = RedisPlainCommand(words)
    writeCommand(capacity: command.capacity, command.write)
  }
}
