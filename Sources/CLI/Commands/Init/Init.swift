import ArgumentParser
import Foundation
import Glibc
import Settings

struct Init: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "init",
    abstract: "Write a commented configuration to start from.",
    discussion: "It asks nothing, and leaves a file that exists as it is.")

  @Argument(help: "The file to write.")
  var file = "semel.yaml"

  @Option(help: "The URL of the backend.")
  var upstream = "http://127.0.0.1:9000"

  @Option(help: "The store: `embedded`, or the URL of a Redis.")
  var store = "embedded"

  @Option(help: "The path of the requests to protect.")
  var path = "/**"

  func validate() throws {
    try require(!file.isEmpty && file != "-", "give the name of the file to write, such as semel.yaml")
  }

  func run() throws {
    let text = StarterConfiguration(upstream: upstream, store: store, path: path).text
    if case .failure(let errors) = Settings.load(text: text, file: file, environment: [:]) {
      // The file does not exist, and the options are what is wrong in it.
      for issue in errors.issues { StandardError.print("semel: \(Self.fault(by: issue))") }
      throw ExitCode.badConfiguration
    }
    switch failure(writing: text) {
    case nil: break
    case EEXIST:
      throw failed("\(file) exists; give another name, or move it away")
    default:
      throw failed("\(file) cannot be written: its folder must exist, and be yours to write to")
    }
    if holdsLogin {
      StandardError.print(
        "semel: \(file) has the store's login in its url, and only you can read it; username and password_file keep it out"
      )
    }
    printNextCommands()
  }

  private static func fault(by issue: SettingsIssue) -> String {
    switch issue.path {
    case "upstreams.backend.url": "--upstream: \(issue.message)"
    // The option takes a word, too, of which the member knows nothing.
    case "store.url": "--store is neither embedded nor a Redis' URL, which \(issue.message)"
    case let path where path.hasPrefix("routes[0].match"): "--path: \(issue.message)"
    default: "\(issue)"
    }
  }

  private func printNextCommands() {
    // A name that begins with a hyphen would be taken for an option.
    let word = Self.shellWord(file.hasPrefix("-") ? "./" + file : file)
    print(
      """
      \(file) is written. Next:

        semel check \(word)
        semel explain \(word) POST \(Self.shellWord(samplePath)) \(sampleFields)
        semel run \(word)
      """)
  }

  private var holdsLogin: Bool { !store.hasPrefix("unix:") && store.contains("@") }

  /// Writes the new file, which nobody else may read if it holds a login. Returns the error's number; `nil` for none.
  private func failure(writing text: String) -> Int32? {
    let descriptor = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode_t(holdsLogin ? 0o600 : 0o666))
    guard descriptor >= 0 else { return errno }
    defer { close(descriptor) }
    let bytes = Array(text.utf8)
    let count = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
    guard count < bytes.count else { return nil }
    unlink(file)
    return EIO
  }

  private static func shellWord(_ text: String) -> String {
    let isPlain = text.allSatisfy { character in
      character.isASCII && (character.isLetter || character.isNumber || "/._-:@%+,".contains(character))
    }
    return isPlain && !text.isEmpty ? text : "'" + text.replacing("'", with: "'\\''") + "'"
  }

  private var sampleFields: String { "-H 'Authorization: Bearer alice' -H 'Idempotency-Key: order-1'" }

  private var samplePath: String {
    path.replacing("/**", with: "/orders").replacing("{", with: "").replacing("}", with: "")
  }
}

struct StarterConfiguration {
  let upstream: String
  let store: String
  let path: String

  var text: String {
    """
    # Semel in front of one backend. Every member, with its default: Sources/Idempotency/SETTINGS.md.
    # `semel check FILE` reports errors, `semel explain FILE METHOD URL` shows what a request meets.

    listen: [{address: "127.0.0.1:8080"}]         # for clients
    # For operators: probes, metrics, records. The first start makes the token, and `semel key` finds it here.
    admin: {address: "127.0.0.1:8081", token_file: semel.token}

    upstreams:
      backend:                                    # this name is part of every record's identity: to rename it
                                                  # later means that no record is found, and retries run again
        url: \(Self.quoted(upstream))
        # response_timeout: 30s                   # then the outcome is unknown, and the client gets 504

    store:
    \(storeMembers)
      # id_secret_file: /run/secrets/semel-id     # keys the record ids; make it now or never, it must not change

    routes:
      - name: writes
        match: {path: \(Self.quoted(path))}       # without methods: all but GET, HEAD, OPTIONS and TRACE
        # Without a key a request is passed through. `required` refuses it, once every client sends one.
        idempotency: optional
        key: {from: ["header:Idempotency-Key"]}
        # Who the client is: no caller gets another's responses. A bearer token that is renewed between retries makes a
        # new caller of the same client; `jwt:sub` with `jwt: {jwks_file: …}` knows it by its subject.
        caller: {parts: ["header:Authorization"]}
        retention: 24h                            # responses are replayed for as long
        # A complete response is stored, also a 500, since a backend may have charged before it failed. Where yours
        # rolls back on 500, say so:
        # outcomes: {retry: [500]}

    """
  }

  private var storeMembers: String {
    guard store != "embedded" else {
      return """
          kind: embedded                            # one file, one process; several nodes share a Redis instead:
          path: semel.db                            # kind: redis, url: "redis://127.0.0.1:6379/0"
        """
    }
    return """
        kind: redis                               # it must not evict, and should append to a file: `semel check --live`
        url: \(Self.quoted(store))
        # username: semel                         # rather than a password in the url
        # password_file: /run/secrets/redis
      """
  }

  /// A text as a YAML string. Of two dollar signs the first would be taken for an escape.
  private static func quoted(_ text: String) -> String {
    let escaped = text.replacing("$$", with: "$$$$").replacing("\\", with: "\\\\")
    return "\"" + escaped.replacing("\"", with: "\\\"") + "\""
  }
}
