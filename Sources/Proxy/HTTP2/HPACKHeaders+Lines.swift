import NIOCore
import NIOHPACK
import Wire

extension HPACKHeaders {
  /// An answer's head.
  init(_ head: AnswerHead) {
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
    lines.withUnsafeReadableBytes { all in
      for line in all.split(separator: ASCII.lineFeed) {
        guard let colon = line.firstIndex(of: ASCII.colon), line.last == ASCII.carriageReturn else {
          continue
        }
        let name = String(decoding: line[..<colon].lazy.map(ASCII.lowercased), as: UTF8.self)
        add(name: name, value: Self.text(MessageHead.trimmed(line[(colon + 1)...].dropLast())))
      }
    }
  }

  /// What is not UTF-8 is taken for ISO 8859-1, as HTTP once said: this codec knows text alone.
  private static func text(_ bytes: Slice<UnsafeRawBufferPointer>) -> String {
    String(validating: bytes, as: UTF8.self)
      ?? String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
  }

  /// Names and values as they were decoded.
  var pairs: [(name: String, value: String)] { map { ($0.name, $0.value) } }

  /// How much text it is.
  var byteCount: Int { reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count } }
}
