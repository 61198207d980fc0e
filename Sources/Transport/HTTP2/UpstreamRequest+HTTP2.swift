import Idempotency
import NIOCore
import Wire

extension UpstreamRequest {
  /// Whether the head certainly fits in a single HEADERS frame.
  var fitsHTTP2: Bool {
    // The names of pseudo-header fields, a length, and changes of the dynamic table's size.
    var size = 128 + HPACKBound.mostBytes(for: method.utf8) + HPACKBound.mostBytes(for: target.utf8)
    fields.withUnsafeReadableBytes { bytes in
      for byte in bytes {
        size += byte == ASCII.lineFeed ? HPACKBound.fieldBytes : HPACKBound.mostBytes(for: byte)
      }
    }
    return size <= HPACKBound.frameBytes
  }
}
