/// A request as the planted server reads it.
struct PlantedRequest {
  let method: String
  let path: String
  let fields: [(name: String, value: String)]
  let body: String

  init(_ text: String) {
    let end = text.firstRange(of: "\r\n\r\n")
    let lines = text[..<(end?.lowerBound ?? text.endIndex)].split(separator: "\r\n")
    let words = (lines.first ?? "").split(separator: " ")
    method = words.first.map(String.init) ?? ""
    path = words.count > 1 ? String(words[1].prefix { $0 != "?" }) : ""
    fields = lines.dropFirst().map { line in
      let name = line.prefix { $0 != ":" }
      return (name.lowercased(), line.dropFirst(name.count + 1).trimmingPrefix { $0 == " " }.trimmedEnd)
    }
    let raw = end.map { text[$0.upperBound...] } ?? ""
    body = fields.contains { $0.name == "transfer-encoding" } ? Self.unchunked(raw) : String(raw)
  }

  func values(_ name: String) -> [String] { fields.filter { $0.name == name }.map(\.value) }

  private static func unchunked(_ text: Substring) -> String {
    text.split(separator: "\r\n").enumerated().filter { $0.offset % 2 == 1 }.map(\.element).joined()
  }
}

extension Substring {
  fileprivate var trimmedEnd: String {
    var text = self
    while text.last == " " { text.removeLast() }
    return String(text)
  }
}
