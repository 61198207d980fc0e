import Wire

@testable import Idempotency

extension Target {
  private static let recipes = [
    Recipe(), Recipe(ignore: [.json("/sent_at"), .json("/items/*/id"), .query("a"), .form("b")]),
    Recipe(only: [.json("/a/b"), .json("/items/*/id"), .form("a"), .part("b")]),
  ]
  private static let pointers = ["", "/a", "/0/0", "/a/b/1", "/items/0/id"].compactMap { JSONPointer($0) }

  /// A JSON body: white space around it counts only where it is no JSON, and every pointer leads somewhere or nowhere.
  static func jsonFault(in bytes: [UInt8]) -> String? {
    guard let sample = Sample(contentType: "application/json".utf8, body: bytes[...]) else { return nil }
    let padded = [0x20, 0x0A] + bytes + [0x0D, 0x09]
    let isRaw = sample.digest() == sample.digest(Recipe(body: .raw))
    for recipe in recipes where (sample.digest(recipe, body: padded) == sample.digest(recipe)) == isRaw {
      return "white space counts where it should not, or not where it should (raw: \(isRaw))"
    }
    return bytes.withUnsafeBytes { text in
      guard let document = try? JSONParser.parse(text) else {
        return isRaw ? nil : "a body is canonical that cannot be parsed"
      }
      guard document.hasDuplicates == isRaw else { return "a parsed body counts as bytes" }
      for pointer in pointers {
        guard case .string(let content) = document.find(pointer) else { continue }
        let count = IteratorSequence(JSONText(content)).reduce(0) { count, _ in count + 1 }
        guard count <= content.count else { return "a decoded text is longer than its spelling" }
      }
      return nil
    }
  }
}
