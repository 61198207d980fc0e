import Idempotency
import Testing

/// The facts of a namespace, in every store.
struct StoreFactTests {
  private static let fact = NamespaceFact(name: "test")

  @Test(arguments: StoreUnderTest.all)
  func `the first value of a fact holds for all`(_ kind: StoreUnderTest) async throws {
    try await kind.runOpened { opened async throws in
      #expect(try await opened.facts.fact(Self.fact) == nil)
      #expect(try await opened.facts.establish(Self.fact, as: "one") == "one")
      #expect(try await opened.otherFacts.establish(Self.fact, as: "two") == "one")
      #expect(try await opened.otherFacts.fact(Self.fact) == "one")
      #expect(try await opened.otherFacts.fact(NamespaceFact(name: "other")) == nil)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `a fact changes only from its expected value, and a repetition changes nothing`(
    _ kind: StoreUnderTest
  ) async throws {
    try await kind.runOpened { opened async throws in
      #expect(try await opened.facts.replace(Self.fact, "none", with: "one") == nil)
      #expect(try await opened.facts.establish(Self.fact, as: "one") == "one")
      #expect(try await opened.otherFacts.replace(Self.fact, "none", with: "two") == "one")
      let long = String(repeating: "ä\n", count: 40_000)
      for _ in 0..<2 { #expect(try await opened.otherFacts.replace(Self.fact, "one", with: long) == long) }
      #expect(try await opened.facts.fact(Self.fact) == long)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `one of many concurrent values of a fact wins for all`(_ kind: StoreUnderTest) async throws {
    try await kind.runOpened { opened async throws in
      let values = try await withThrowingTaskGroup(of: String.self) { group in
        for number in 0..<20 {
          let facts = number % 2 == 0 ? opened.facts : opened.otherFacts
          group.addTask { try await facts.establish(Self.fact, as: "\(number)") }
        }
        return try await group.reduce(into: Set<String>()) { $0.insert($1) }
      }
      #expect(values.count == 1)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `facts are no records`(_ kind: StoreUnderTest) async throws {
    try await kind.runOpened { opened async throws in
      _ = try await opened.facts.establish(Self.fact, as: "one")
      #expect(try await opened.store.list(after: nil).records.isEmpty)
    }
  }
}
