import Foundation
import Idempotency
import JWTKit
import Logging
import TestSupport
import Testing
import Wire

@testable import Tokens

/// The keys of a set that are used, by their number and their names.
struct KeySetTests {
  private struct Payload: JWTPayload {
    var sub = "alice"

    func verify(using algorithm: some JWTAlgorithm) {}
  }

  /// A token that a key has signed, with a `kid` in its header if one is given.
  private func token(by key: ES256PrivateKey, kid: String? = nil) async throws -> CompactToken {
    let collection = JWTKeyCollection()
    await collection.add(ecdsa: key)
    let header: JWTHeader = kid.map { ["kid": .string($0)] } ?? [:]
    return try #require(CompactToken(Array(try await collection.sign(Payload(), header: header).utf8)))
  }

  /// A key as a member of a set.
  private func entry(_ key: ES256PrivateKey, kid: String? = nil) throws -> String {
    func url(_ text: String) -> String {
      text.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }
    let parameters = try #require(key.parameters)
    let name = kid.map { #","kid":"\#($0)""# } ?? ""
    return
      #"{"kty":"EC","crv":"P-256","x":"\#(url(parameters.x))","y":"\#(url(parameters.y))"\#(name)}"#
  }

  private func document(_ entries: [String]) -> [UInt8] {
    Array("{\"keys\":[\(entries.joined(separator: ","))]}".utf8)
  }

  /// A source that has read the set, and what it logged.
  private func source(_ entries: [String]) async -> (source: KeySetSource, log: LogRecorder) {
    let log = LogRecorder()
    let document = document(entries)
    let source = KeySetSource(
      name: "https://id", isFile: false, logger: Logger(label: "test") { _ in log }
    ) { () throws(KeySetFault) in document }
    source.renew()
    await source.settled()
    return (source, log)
  }

  @Test func `keys beyond the limit are left out, and the log says so`() async throws {
    let key = ES256PrivateKey()
    let numbers = 0..<(KeySet.maxKeys + 3)
    let (source, log) = await source(try numbers.map { try entry(key, kid: "k\($0)") })
    #expect(source.figures.keys == 256)
    let set = source.keys.set
    for (number, isUsed) in [(0, true), (255, true), (256, false)] {
      let token = try await token(by: key, kid: "k\(number)")
      #expect(set.verifies(token, by: .es256) == isUsed && set.holdsKey(of: token) == isUsed)
    }
    let warnings = log.entries(at: .warning)
    #expect(warnings.map(\.metadata) == [["source": "https://id", "left_out": "3", "limit": "256"]])
    #expect(warnings.first?.message.contains("their set has too many") == true)
    #expect(log.entries(at: .info).map { $0.metadata["left_out"] } == ["3"])
    #expect(source.line == "jwt https://id: 256 keys, 3 left out")
  }

  @Test func `of keys without a name the first eight are tried, and the log names the others`() async throws {
    let keys = (0..<10).map { _ in ES256PrivateKey() }
    let (source, log) = await source(try keys.map { try entry($0) })
    for (number, isTried) in [(0, true), (7, true), (8, false), (9, false)] {
      // A name that no key has is as good as none.
      for kid in [nil, "other"] {
        let token = try await token(by: keys[number], kid: kid)
        #expect(source.keys.set.verifies(token, by: .es256) == isTried)
        #expect(!source.keys.set.holdsKey(of: token))
      }
    }
    let warnings = log.entries(at: .warning)
    #expect(warnings.map(\.metadata) == [["source": "https://id", "left_out": "2", "limit": "8"]])
    #expect(warnings.first?.message.contains("no kid") == true)
    #expect(source.figures.keys == 8)
  }

  @Test func `the key that a token names is tried before those without a name`() async throws {
    let (key, others) = (ES256PrivateKey(), (0..<8).map { _ in ES256PrivateKey() })
    let set = try await KeySet(
      document: document(try others.map { try entry($0) } + [entry(key, kid: "named")]))
    #expect(set.verifies(try await token(by: key, kid: "named"), by: .es256))
    #expect(!set.verifies(try await token(by: key), by: .es256))
    #expect(set.count == 9 && set.leftOut == 0)
  }

  @Test func `for a token without a name those without one are tried first`() async throws {
    let (key, others) = (ES256PrivateKey(), (0..<8).map { _ in ES256PrivateKey() })
    let named = try others.enumerated().map { try entry($1, kid: "k\($0)") }
    let set = try await KeySet(document: document(named + [try entry(key)]))
    for (number, isTried) in [(0, true), (2, true), (3, false)] {
      #expect(set.verifies(try await token(by: others[number]), by: .es256) == isTried)
    }
    #expect(set.tries(for: nil, by: .es256) == 4 && set.tries(for: "k7", by: .es256) == 2)
    #expect(set.verifies(try await token(by: key), by: .es256))
    #expect(set.leftOut == 0)
  }

  @Test func `a set within the limits causes no warning`() async throws {
    let (source, log) = await source([try entry(ES256PrivateKey(), kid: "a"), #"{"kty":"oct","k":"AAAA"}"#])
    #expect(log.entries(at: .warning).isEmpty)
    let read = log.entries(at: .info).map(\.metadata)
    #expect(read == [["source": "https://id", "keys": "1", "unusable": "1", "left_out": "0"]])
    #expect(source.line == "jwt https://id: 1 key")
  }
}
