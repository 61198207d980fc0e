package typealias Bytes = [UInt8]

/// The reply to one command.
package enum RESPReply: Equatable, Sendable {
  case status(String)
  /// An error, beginning with its code.
  case error(String)
  case integer(Int64)
  case bulk(Bytes)
  /// The bulk that is missing.
  case null
  /// The array that is missing.
  case nullArray
  case array([RESPReply])
  /// Several replies to one command, as to a subscription to several channels; none for a command whose reply follows
  /// later.
  case sequence([RESPReply])

  package static func text(_ text: String) -> RESPReply { .bulk(Bytes(text.utf8)) }
  package static let ok = RESPReply.status("OK")

  /// Appends the reply in RESP2.
  package func write(to bytes: inout Bytes) {
    switch self {
    case .status(let text): Self.line("+", text, to: &bytes)
    case .error(let text): Self.line("-", text, to: &bytes)
    case .integer(let value): Self.line(":", String(value), to: &bytes)
    case .bulk(let text):
      Self.line("$", String(text.count), to: &bytes)
      bytes += text
      bytes += [0x0D, 0x0A]
    case .null: bytes += "$-1\r\n".utf8
    case .nullArray: bytes += "*-1\r\n".utf8
    case .array(let members):
      Self.line("*", String(members.count), to: &bytes)
      for member in members { member.write(to: &bytes) }
    case .sequence(let replies):
      for reply in replies { reply.write(to: &bytes) }
    }
  }

  private static func line(_ mark: String, _ text: String, to bytes: inout Bytes) {
    bytes += mark.utf8
    bytes += text.utf8
    bytes += [0x0D, 0x0A]
  }

  /// Whether it is an error.
  package var isError: Bool {
    if case .error = self { true } else { false }
  }
}
