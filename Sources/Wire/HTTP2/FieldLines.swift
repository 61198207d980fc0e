import NIOCore

extension ByteBuffer {
  /// Reads a block of field lines, each ended by CRLF, in the form that HTTP/2 has for them: names in lower case, and
  /// values as text without the white space around them.
  ///
  /// What is not UTF-8 is taken for ISO 8859-1, as HTTP once said: the codec of HTTP/2 knows text alone.
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
