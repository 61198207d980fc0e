import Foundation
import Idempotency
import NIOCore
import Proxy
import Wire

// The fingerprint. Each statement about it is found by making it once more with another recipe.
extension Explanation {
  /// The maximum number of members that are listed.
  private static let maxMembers = 40

  /// - Parameter method: The method that enters the fingerprint.
  mutating func explainFingerprint(
    _ recipe: Recipe, of head: MessageHead, _ target: RequestTarget, method: ByteBuffer, _ call: KeyedCall
  ) {
    let make: (Recipe) -> Digest256 = { [body] recipe in
      Fingerprint.make(
        recipe: recipe, head: head, method: method, path: target.path, query: target.query, body: body
      ).digest
    }
    var counted = ["method", "path"]
    if target.query?.readableBytes ?? 0 > 0 { counted.append("query (in the order of its names)") }
    if let type = mediaType(head) { counted.append("media type \(type)") }
    counted += recipe.headers.map { "header \($0)" }
    var texts = [
      "recipe \(recipe.text), digest \(call.fingerprint.digest.hexText.prefix(16))…",
      "counts: " + counted.joined(separator: ", ") + ", " + bodyForm(recipe, head, make),
    ]
    texts += members(recipe, make)
    add("fingerprint", texts)
  }

  private func mediaType(_ head: MessageHead) -> String? {
    head.string(.contentType).map {
      $0.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased()
    }
  }

  private func bodyForm(_ recipe: Recipe, _ head: MessageHead, _ make: (Recipe) -> Digest256) -> String {
    switch recipe.body {
    case .none: return "not the body"
    case .raw: return "the body's bytes"
    case .auto:
      let raw = Recipe(version: recipe.version, body: .raw, headers: recipe.headers, ignore: recipe.ignore)
      if make(raw) == make(recipe) { return "the body's bytes" }
      guard head.first(.contentEncoding) == nil else { return "the body's bytes as they are coded" }
      switch mediaType(head) {
      case "application/x-www-form-urlencoded": return "the form's pairs, whatever their order"
      case "multipart/form-data": return "the parts of the body without their boundary"
      default: return "the body as JSON, whatever the order of its members"
      }
    }
  }

  /// The members of a JSON body that count and those that are left out. A member counts if leaving it out, too, makes
  /// another fingerprint.
  private func members(_ recipe: Recipe, _ make: @escaping (Recipe) -> Digest256) -> [String] {
    let object = try? JSONSerialization.jsonObject(with: Data(body.readableBytesView))
    guard recipe.body == .auto, let names = (object as? [String: Any])?.keys.sorted(), !names.isEmpty else {
      return []
    }
    let base = make(recipe)
    let with = { (ignore: [String]) in
      make(Recipe(version: recipe.version, body: recipe.body, headers: recipe.headers, ignore: ignore))
    }
    let pointer = { (name: String) in
      "/" + name.replacing("~", with: "~0").replacing("/", with: "~1")
    }
    let counted = names.prefix(Self.maxMembers).filter { with(recipe.ignore + [pointer($0)]) != base }
    guard !counted.isEmpty || !recipe.ignore.isEmpty else { return [] }
    let more = names.count > Self.maxMembers ? ", …" : ""
    var texts = ["members that count: " + (counted.isEmpty ? "none" : counted.joined(separator: ", ") + more)]
    for path in recipe.ignore {
      let isThere = with(recipe.ignore.filter { $0 != path }) != base
      texts.append("left out: \(path)" + (isThere ? "" : " (not in this body)"))
    }
    return texts
  }
}
