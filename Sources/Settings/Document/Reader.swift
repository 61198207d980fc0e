/// The shared state while a file is read: its name, the environment, and the issues found so far.
final class Reader {
  let file: String
  let environment: [String: String]
  let names: [Position: String]
  /// Whether the file is read for a command that makes no connection by it.
  let isOffline: Bool
  private var refusals: [SettingsIssue] = []
  private var doubts: [SettingsIssue] = []
  private var refusedPaths: Set<String> = []

  init(
    file: String, environment: [String: String], names: [Position: String] = [:], isOffline: Bool = false
  ) {
    self.file = file
    self.environment = environment
    self.names = names
    self.isOffline = isOffline
  }

  /// Reads the text of a file by `body`, which gets the root. The issues are those of the reader that is returned.
  static func read(
    _ text: String, file: String, environment: [String: String], isOffline: Bool = false,
    by body: (Value) -> Void
  ) -> Reader {
    let document: Document
    do throws(Document.SyntaxError) {
      document = try Document(composing: text)
    } catch {
      let reader = Reader(file: file, environment: environment)
      reader.refuse("", at: error.position, error.message)
      return reader
    }
    let reader = Reader(
      file: file, environment: environment, names: document.names, isOffline: isOffline)
    if let root = document.root {
      body(Value(reader: reader, node: root, path: ""))
    } else {
      reader.refuse("", at: .start, "the file is empty: write at least upstreams and routes")
    }
    return reader
  }

  /// Whether a variable that the environment lacks counts as its own name here: only connections need the true value.
  func takesNames(in path: String) -> Bool {
    isOffline
      && (path.contains(".reconcile.")
        || ["admin.", "tracing.", "store.url", "store.username"].contains { path.hasPrefix($0) })
  }

  var errors: [SettingsIssue] { Self.sorted(refusals) }
  var warnings: [SettingsIssue] { Self.sorted(doubts) }

  func refuse(_ path: String, at position: Position, _ message: String) {
    refusedPaths.insert(path)
    refusals.append(issue(path, position, message))
  }

  func warn(_ path: String, at position: Position, _ message: String) {
    doubts.append(issue(path, position, message))
  }

  /// Whether this member, or a part of it, has been refused, so that further checks of its value make no sense.
  func hasRefused(_ path: String) -> Bool {
    refusedPaths.contains {
      $0.hasPrefix(path) && ["", ".", "["].contains($0.dropFirst(path.count).prefix(1))
    }
  }

  private func issue(_ path: String, _ position: Position, _ message: String) -> SettingsIssue {
    SettingsIssue(file: file, line: position.line, column: position.column, path: path, message: message)
  }

  private static func sorted(_ issues: [SettingsIssue]) -> [SettingsIssue] {
    issues.enumerated().sorted { left, right in
      let places = (left.element.line, left.element.column, left.offset)
      return places < (right.element.line, right.element.column, right.offset)
    }.map(\.element)
  }
}
