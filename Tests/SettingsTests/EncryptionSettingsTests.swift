import Foundation
import Idempotency
import Settings
import TestSupport
import Testing

/// `store.encryption`.
struct EncryptionSettingsTests {
  private let directory = TemporaryDirectory()

  private func write(_ name: String, _ secret: String) throws -> String {
    try secret.write(toFile: directory.file(name), atomically: true, encoding: .utf8)
    return directory.file(name)
  }

  private func file(_ paths: String...) -> String {
    upstream + "store: {encryption: {secret_files: [\(paths.joined(separator: ", "))]}}"
  }

  @Test func `the secrets are read in their order, and not shown`() throws {
    let (new, old) = (try write("new", "0123456789abcdef\nmore\n"), try write("old", "fedcba9876543210"))
    let settings = try load(file(new, old))
    #expect(settings.store.encryption?.secretFiles == [new, old])
    #expect(settings.store.encryption?.secrets == ["0123456789abcdef", "fedcba9876543210"])
    #expect(settings.shownJSON.contains(new) && !settings.shownJSON.contains("456789"))
    #expect(try load(upstream).store.encryption == nil)
  }

  @Test func `each fault names its member`() throws {
    let good = try write("good", "0123456789abcdef")
    let twin = try write("twin", "0123456789abcdef")
    let short = try write("short", "0123456789abcde")
    let remedy = "`openssl rand -base64 32` makes a secret"
    let member = "store.encryption.secret_files"
    #expect(
      issues(file("/nowhere")) == ["2:37: \(member)[0]: names /nowhere, which does not exist; \(remedy)"])
    #expect(
      issues(file(short))
        == ["2:37: \(member)[0]: names a file whose secret is shorter than 16 bytes; \(remedy)"])
    let twins = issues(file(good, twin))
    #expect(twins.count == 1 && twins[0].contains("[1]: holds the same secret as \(good)"), "\(twins)")
    #expect(issues(file()).count == 1 && issues(file())[0].contains("\(member): must not be empty"))
    let bare = issues(upstream + "store: {encryption: {}}")
    #expect(bare.count == 1 && bare[0].contains("store.encryption.secret_files: is missing"), "\(bare)")
    let flag = issues(upstream + "store: {encryption: true}")
    #expect(flag.count == 1 && flag[0].contains("store.encryption: must be a mapping"), "\(flag)")
  }

  @Test func `a reload does not take other secrets`() throws {
    let (new, old) = (try write("new", "0123456789abcdef"), try write("old", "fedcba9876543210"))
    for (before, after) in [(file(new), file(old)), (file(new), file(old, new)), (file(new), upstream)] {
      let plan = ReloadPlan(from: try load(before), to: try load(after))
      guard case .refuse(let reasons) = plan else {
        Issue.record("it was taken")
        return
      }
      #expect(reasons.map(\.member) == ["store.encryption"])
    }
  }
}
