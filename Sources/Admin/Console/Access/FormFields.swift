import HTTPTypes
import Hummingbird
import NIOCore

struct FormFields {
  /// The maximum size of a form: a response that an operator states, and more.
  private static let maxBytes = 1 << 20

  private let fields: [String: String]

  init(of request: Request) async throws {
    let bytes: ByteBuffer
    do {
      bytes = try await request.body.collect(upTo: Self.maxBytes)
    } catch is NIOTooManyBytesError {
      throw AdminError(
        .contentTooLarge, "The form is larger than 1 MiB: use `semel key resolve` for a larger response.")
    }
    do {
      fields = try URLEncodedFormDecoder().decode([String: String].self, from: String(buffer: bytes))
    } catch {
      throw AdminError.bad("The form cannot be read.")
    }
  }

  /// The text of a field without the spaces around it; `nil` if it is empty.
  subscript(name: String) -> String? {
    let text = fields[name]?.trimmingSpaces ?? ""
    return text.isEmpty ? nil : text
  }

  func whole(_ name: String) -> String { fields[name] ?? "" }
}

extension String {
  var trimmingSpaces: String {
    let isSpace = { (character: Character) in character.isWhitespace }
    return String(drop(while: isSpace).reversed().drop(while: isSpace).reversed())
  }
}
