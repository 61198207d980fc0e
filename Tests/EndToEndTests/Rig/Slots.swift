import Testing

/// The slots that each test of a suite takes before it begins, since it starts servers of its own before its rig.
struct Slots: SuiteTrait, TestTrait, TestScoping {
  let count: Int
  let isRecursive = true

  func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @Sendable @concurrent () async throws -> Void
  ) async throws {
    guard testCase != nil else { return try await function() }
    try await Rig.withSlots(count) { try await function() }
  }
}

extension Trait where Self == Slots {
  static func slots(_ count: Int) -> Self { Slots(count: count) }
}
