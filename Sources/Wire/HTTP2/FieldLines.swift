import NIOCore

extension ByteBuffer {
  /// Calls `body` for each line of a block of field lines, each ended by CRLF, in the form of HTTP/2: the name in lower
  /// case, and the value as text without the white space around it.
  ///
  /// Values that are not UTF-8 are read as ISO 8859-1, which HTTP once prescribed, because the HTTP/2 codec accepts
  /// text alone.
  public func eachFieldLine(_ body: (_ name: String, _ value: String) -> Void) {
    withUnsafeReadableBytes { all in
      for line in all.split(separator: ASCII.lineFeed) {
        guard let colon = line.firstIndex(of: ASCII.colon), line.last == ASCII.carriageReturn else {
          continue
        }
        let name = String(decoding: line[..<colon].lazy.map(ASCII.lowercased), as: UTF8.self)
        body(name, Self.text(MessageHead.trimmed(line[(colon + 1)...].dropLast())))
      }
    }
  }

  private static func text(_ bytes: Slice<UnsafeRawBufferPointer>) -> String {
    String(validating: bytes, as: UTF8.self)
      ?? String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
  }
}
