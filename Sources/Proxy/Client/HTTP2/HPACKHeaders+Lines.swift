import NIOCore
import NIOHPACK
import Wire

extension HPACKHeaders {
  /// A response's head.
  init(_ head: ClientResponseHead) {
    var lines = ByteBufferAllocator().buffer(capacity: head.capacity)
    head.writeFields(into: &lines)
    if case .length(let length) = head.content { lines.writeContentLength(length) }
    self.init([(":status", String(head.status))])
    reserveCapacity(24)
    add(lines: lines)
  }

  /// Field lines, each ended by CRLF.
  init(lines: ByteBuffer) {
    self.init([])
    add(lines: lines)
  }

  private mutating func add(lines: ByteBuffer) {
    lines.eachFieldLine { add(name: $0, value: $1) }
  }

  /// Names and values as they were decoded.
  var pairs: [(name: String, value: String)] { map { ($0.name, $0.value) } }

  /// Whether it surely fits a single frame.
  var fitsFrame: Bool {
    let forms = HPACKBound.fieldBytes * (count + 1)
    guard forms + HPACKBound.byteBits * byteCount / 8 > HPACKBound.frameBytes else { return true }
    let texts = reduce(0) {
      $0 + HPACKBound.maxBytes(for: $1.name.utf8) + HPACKBound.maxBytes(for: $1.value.utf8)
    }
    return forms + texts <= HPACKBound.frameBytes
  }

  /// The number of bytes of all names and values.
  var byteCount: Int { reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count } }
}
