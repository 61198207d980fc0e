import CCurl
import Glibc
import NIOCore
import Wire

/// The request's field lines in the form libcurl takes them, in memory that is kept from request to request.
///
/// libcurl writes the text of each node followed by CRLF, so one node may carry many lines. `Host` stands in a node
/// of its own before the others, since libcurl adds one unless a node begins with it. The last nodes are names
/// without a value: they keep libcurl from adding fields of its own, and do not touch those in our lines.
struct FieldList: ~Copyable {
  private static let suppressed: [StaticString] = ["Accept:", "Content-Type:", "Expect:"]

  /// Host, the other lines, then what is suppressed.
  private let nodes: UnsafeMutablePointer<curl_slist>
  private var text: UnsafeMutableRawPointer
  private var capacity = 1024

  init() {
    text = .allocate(byteCount: capacity, alignment: 1)
    nodes = .allocate(capacity: 2 + Self.suppressed.count)
    nodes.initialize(repeating: curl_slist(), count: 2 + Self.suppressed.count)
    for (index, name) in Self.suppressed.enumerated() {
      nodes[2 + index].data = UnsafeMutableRawPointer(mutating: name.utf8Start).assumingMemoryBound(
        to: CChar.self)
      nodes[2 + index].next = index + 1 < Self.suppressed.count ? nodes + 3 + index : nil
    }
    fill(ByteBuffer())
  }

  deinit {
    nodes.deallocate()
    text.deallocate()
  }

  /// The head of the list; the same for the whole life of this value.
  var first: UnsafeMutablePointer<curl_slist> { nodes }

  /// Lays out a block of field lines, each ended by CRLF.
  mutating func fill(_ fields: ByteBuffer) {
    fields.withUnsafeReadableBytes { block in
      // Two ends, and the blank after an empty `Host:`.
      reserve(block.count + 3)
      let host = Self.hostLine(in: block)
      var end = copy(block[host].dropLast(2), at: 0)
      if end == 5 { end = copy(" ", at: end) }
      let hasHost = end > 0
      end = finish(at: end)

      let rest = end
      end = copy(block[..<host.lowerBound], at: end)
      end = copy(block[host.upperBound...], at: end)
      end = max(rest, end - 2)
      keepEmptyValue(from: rest, to: end)
      let hasRest = end > rest
      _ = finish(at: end)

      let start = text.assumingMemoryBound(to: CChar.self)
      nodes[0].data = hasHost ? start : start + rest
      nodes[1].data = start + rest
      nodes[0].next = hasHost && hasRest ? nodes + 1 : nodes + 2
      nodes[1].next = nodes + 2
    }
  }

  private mutating func reserve(_ count: Int) {
    guard count > capacity else { return }
    capacity = max(count, capacity * 2)
    text.deallocate()
    text = .allocate(byteCount: capacity, alignment: 1)
  }

  private func copy(_ bytes: some Collection<UInt8>, at offset: Int) -> Int {
    let room = UnsafeMutableRawBufferPointer(start: text + offset, count: capacity - offset)
    room.copyBytes(from: bytes)
    return offset + bytes.count
  }

  private func copy(_ literal: StaticString, at offset: Int) -> Int {
    copy(UnsafeBufferPointer(start: literal.utf8Start, count: literal.utf8CodeUnitCount), at: offset)
  }

  private func finish(at offset: Int) -> Int {
    text.storeBytes(of: 0, toByteOffset: offset, as: UInt8.self)
    return offset + 1
  }

  /// libcurl drops a node whose value is empty, unless a semicolon stands for the colon. Only a single line can be
  /// that: behind the first of many stands more than white space.
  private func keepEmptyValue(from start: Int, to end: Int) {
    let line = UnsafeMutableRawBufferPointer(start: text + start, count: end - start)
    guard let colon = line.firstIndex(of: ASCII.colon) else { return }
    guard line[(colon + 1)...].allSatisfy({ $0 == ASCII.space || $0 == ASCII.tab }) else { return }
    line[colon] = UInt8(ascii: ";")
    if colon + 1 < line.count { line[colon + 1] = 0 }
  }

  /// Where the `Host` line stands, its end included; empty at the block's start where there is none.
  private static func hostLine(in block: UnsafeRawBufferPointer) -> Range<Int> {
    var start = 0
    while start < block.count {
      let rest = UnsafeRawBufferPointer(rebasing: block[start...])
      guard let base = rest.baseAddress, let feed = memchr(base, 0x0A, rest.count) else { break }
      let length = UnsafeRawPointer(feed) - base + 1
      let name = UnsafeRawBufferPointer(rebasing: rest[..<min(5, length)])
      if ASCII.equalsIgnoringCase(name, "host:") { return start..<(start + length) }
      start += length
    }
    return 0..<0
  }
}
