import Mustache

enum ConsoleTemplates {
  private static let library: MustacheLibrary = {
    MustacheContentTypes.register(HTMLText(), named: HTMLText.name)
    var library = MustacheLibrary()
    for (name, text) in all {
      do {
        // Each template names its content type itself: a part begins with the library's own.
        try library.register("{{% CONTENT_TYPE: \(HTMLText.name)}}" + text, named: name)
      } catch {
        preconditionFailure("ConsoleTemplates: \(name) cannot be read: \(error)")
      }
    }
    return library
  }()

  private static let all: [String: String] = [
    "layout": layout, "now": now, "records": records, "record": record, "facts": facts, "rows": rows,
    "matches": matches, "bulk": bulk, "routes": routes, "live": live, "line": line, "audit": audit,
    "configuration": configuration, "login": login, "error": error, "search": search,
  ]

  static func render(_ view: View, _ name: String) -> String {
    guard let text = library.render(view, withTemplate: name) else {
      preconditionFailure("ConsoleTemplates: there is no template \(name)")
    }
    return text
  }
}

/// Text in HTML, within elements and quoted attributes. The library's own type goes by characters, and leaves a
/// quotation mark with a combining mark, which would end an attribute. This one goes by scalars. Control characters,
/// and those that change the direction of text, become visible.
struct HTMLText: MustacheContentType {
  static let name = "SCALARS"

  func escapeText(_ text: String) -> String { Self.escaped(text) }

  static func escaped(_ text: String) -> String {
    var result = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": result.append(contentsOf: "&amp;".unicodeScalars)
      case "<": result.append(contentsOf: "&lt;".unicodeScalars)
      case ">": result.append(contentsOf: "&gt;".unicodeScalars)
      case "\"": result.append(contentsOf: "&quot;".unicodeScalars)
      case "'": result.append(contentsOf: "&#39;".unicodeScalars)
      case "\n", "\t": result.append(scalar)
      case "\u{0}"..."\u{1F}", "\u{7F}"..."\u{9F}", "\u{200E}", "\u{200F}", "\u{202A}"..."\u{202E}",
        "\u{2066}"..."\u{2069}":
        result.append("\u{FFFD}")
      default: result.append(scalar)
      }
    }
    return String(result)
  }
}
