import Yams

/// The host and the base path of an API, by the URL of a server in its document.
public struct ServerAddress: Equatable, Sendable {
  /// The host without its port; `nil` if the URL has none, so that all hosts are meant.
  public let host: String?
  /// The path that stands before those of the document, without a slash at its end.
  public let base: String

  /// Reads a URL, or a path.
  public init(_ url: String) {
    var rest = Substring(url)
    if let separator = url.firstRange(of: "://") {
      let authority = url[separator.upperBound...].prefix { !"/?#".contains($0) }
      rest = url[authority.endIndex...]
      let name =
        authority.hasPrefix("[") ? authority.prefix { $0 != "]" } + "]" : authority.prefix { $0 != ":" }
      host = name.isEmpty ? nil : String(name)
    } else {
      host = nil
    }
    var path = rest.prefix { !"?#".contains($0) }
    while path.last == "/" { path.removeLast() }
    base = path.isEmpty || path.hasPrefix("/") ? String(path) : "/" + path
  }

  /// The first server that an operation, its path or the document names, with its variables' defaults; `nil` for none.
  init?(first servers: [Node?]) {
    guard let server = servers.compactMap({ $0?.elements.first }).first,
      var url = server.member("url")?.scalar?.string
    else { return nil }
    for (name, variable) in server.member("variables")?.mapping.map(Array.init) ?? [] {
      guard let name = name.scalar?.string, let value = variable.member("default")?.scalar?.string else {
        continue
      }
      url = url.replacing("{\(name)}", with: value)
    }
    self.init(url)
  }
}
