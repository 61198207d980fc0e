import Foundation
import Idempotency
import Settings
import Testing

/// `store.id_secret_file`.
struct IDSecretTests {
  private func withFile<Outcome>(_ text: String, _ body: (String) throws -> Outcome) throws -> Outcome {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent("semel-\(UUID())").path
    try text.write(toFile: path, atomically: true, encoding: .utf8)
    defer { try? FileManager.default.removeItem(atPath: path) }
    return try body(path)
  }

  private func file(_ path: String) -> String { upstream + "store: {id_secret_file: \(path)}" }

  @Test func `the first line is the secret, and is not shown`() throws {
    try withFile("0123456789abcdef\nmore\n") { path in
      let settings = try load(file(path))
      #expect(settings.store.idSecret == "0123456789abcdef")
      #expect(settings.ownWarnings.isEmpty)
      #expect(settings.shownJSON.contains(path) && !settings.shownJSON.contains("0123456789"))
    }
  }

  @Test func `a missing, an empty and a short secret are reported`() throws {
    #expect(
      issues(file("/nowhere"))
        == [
          "2:25: store.id_secret_file: names /nowhere, which does not exist; `openssl rand -base64 32` makes a secret"
        ])
    for text in ["", "\n", "\n0123456789abcdef\n", "\r\n0123456789abcdef"] {
      try withFile(text) { path in
        let found = issues(file(path))
        #expect(found.count == 1 && found[0].contains("holds no secret in its first line"), "\(found)")
      }
    }
    try withFile("short") { path in
      let settings = try load(file(path))
      #expect(settings.ownWarnings.map(\.path) == ["store.id_secret_file"])
    }
  }

  @Test(arguments: [
    ("admin: {address: \"127.0.0.1:1\", token_file: \"\"}", "admin.token_file"),
    ("store: {id_secret_file: ''}", "store.id_secret_file"),
    ("store: {encryption: {secret_files: ['']}}", "store.encryption.secret_files[0]"),
    ("store: {kind: redis, url: \"redis://h\", username: u, password_file: ''}", "store.password_file"),
    ("jwt: {hmac_secret_file: ''}", "jwt.hmac_secret_file"), ("jwt: {jwks_file: ''}", "jwt.jwks_file"),
  ])
  func `a path that is empty is refused as such`(text: String, member: String) {
    let found = issues(upstream + text)
    #expect(
      found.count == 1 && found[0].contains("\(member): must not be empty: write the path of"), "\(found)")
  }

  @Test(arguments: [
    (" \t\ntoken", "holds spaces alone in its first line"),
    ("to\u{7}ken", "whose first line has a control character, which no request can send"),
    ("\u{FEFF}token", "begins with a byte order mark; save it without, since it would be part of the secret"),
    (" a token\t", nil),
  ])
  func `an admin token that no request can send is refused`(content: String, reason: String?) throws {
    try withFile(content) { path in
      let found = issues(upstream + "admin: {address: '127.0.0.1:1', token_file: '\(path)'}")
      #expect(found.count == (reason == nil ? 0 : 1), "\(found)")
      #expect(
        found.allSatisfy { $0.hasSuffix(reason ?? "") && $0.contains("admin.token_file: names \(path)") })
    }
  }

  @Test func `a reload does not take another secret`() throws {
    try withFile("0123456789abcdef") { path in
      let old = try load(file(path))
      try "0123456789abcdeF".write(toFile: path, atomically: true, encoding: .utf8)
      let plan = ReloadPlan(from: old, to: try load(file(path)))
      guard case .refuse(let reasons) = plan else {
        Issue.record("it was taken")
        return
      }
      #expect(reasons.map(\.member) == ["store.id_secret_file"])
    }
  }
}
