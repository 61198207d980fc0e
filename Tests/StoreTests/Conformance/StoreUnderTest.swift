import Idempotency
import Testing

/// A kind of store that the conformance suite is run on. `StoreUnderTest.all` lists them.
struct StoreUnderTest: Sendable, CustomTestStringConvertible {
  /// A store on data of its own.
  struct Opened: Sendable {
    let store: any RecordStore
    /// The same data as another node or event loop has it; `store` itself where there is no such thing.
    let other: any RecordStore
    /// The facts of the namespace, as each of the two has them.
    let facts: any NamespaceFacts
    let otherFacts: any NamespaceFacts
    /// Ends both, and removes their data.
    let close: @Sendable () async -> Void
    /// Returns the same data in the store's next generation, which begins with a loss of records; `nil` where no test
    /// needs it.
    var successor: (@Sendable () async throws -> any RecordStore)?
    /// Sets the store's clock to this number of seconds ahead of the machine's; `nil` where a test cannot.
    var setClock: (@Sendable (Int64) async throws -> Void)?
  }

  let testDescription: String
  let open: @Sendable () async throws -> Opened

  init(_ name: String, open: @escaping @Sendable () async throws -> Opened) {
    testDescription = name
    self.open = open
  }

  /// Runs a test on a store with data of its own.
  func run(_ test: (any RecordStore) async throws -> Void) async throws {
    try await run { store, _ in try await test(store) }
  }

  /// Runs a test on two handles of the same data.
  func run(_ test: (any RecordStore, any RecordStore) async throws -> Void) async throws {
    try await runOpened { try await test($0.store, $0.other) }
  }

  /// Runs a test on all that was opened.
  func runOpened(_ test: (Opened) async throws -> Void) async throws {
    let opened = try await open()
    do {
      try await test(opened)
    } catch {
      await opened.close()
      throw error
    }
    await opened.close()
  }
}
