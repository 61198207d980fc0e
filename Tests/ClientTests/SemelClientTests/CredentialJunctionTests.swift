@testable import SemelClient
import Testing

struct CredentialJunctionTests {
  @Test func `one refresh serves all calls that need it`() {
    var junction = CredentialJunction()
    #expect(junction.refused(generation: 0, now: .zero) == .refresh)
    #expect(junction.refused(generation: 0, now: .zero) == .join)
    #expect(junction.admit() == .join)
    junction.refreshEnded(isSuccess: true)
    #expect(junction.admit() == .proceed)
    #expect(junction.generation == 1)
  }

  @Test func `a call that raced with a stale credential is sent again without a refresh`() {
    var junction = CredentialJunction()
    _ = junction.refused(generation: 0, now: .zero)
    junction.refreshEnded(isSuccess: true)
    #expect(junction.refused(generation: 0, now: .zero) == .resend)
    #expect(junction.refused(generation: 1, now: .zero) == .refresh)
  }

  @Test func `after a refresh that failed, the next call tries again`() {
    var junction = CredentialJunction()
    _ = junction.refused(generation: 0, now: .zero)
    junction.refreshEnded(isSuccess: false)
    #expect(junction.generation == 0)
    #expect(junction.refused(generation: 0, now: .zero) == .refresh)
  }

  @Test func `there are five refreshes within thirty seconds, and no more`() {
    var junction = CredentialJunction()
    for generation in 0..<5 {
      #expect(junction.refused(generation: generation, now: .seconds(generation)) == .refresh)
      junction.refreshEnded(isSuccess: true)
    }
    #expect(junction.refused(generation: 5, now: .seconds(29)) == .giveUp)
    #expect(junction.refused(generation: 5, now: .seconds(30)) == .refresh)
  }
}
