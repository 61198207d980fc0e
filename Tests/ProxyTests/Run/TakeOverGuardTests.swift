import Idempotency
import Logging
import NIOEmbedded
import Platform
import Telemetry
import Testing

@testable import Proxy

/// Claims that are held back while an outcome waits for the store.
struct TakeOverGuardTests {
  private static let now = BootInstant(nanoseconds: 60_000_000_000)

  private static func request(
    _ text: String, _ takeOver: ClaimRequest.TakeOver = .afterSettle(1000)
  ) -> ClaimRequest {
    ClaimRequest(
      id: RecordID(Digest256.sha256(of: Array(text.utf8))), owner: OwnerToken(high: 1, low: 2),
      fingerprint: Fingerprint(recipe: Recipe(), digest: Digest256.sha256(of: Array("body".utf8))),
      lease: .seconds(60), takeOver: takeOver, unknownRetention: .seconds(60), remember: .seconds(60))
  }

  private static func mayTakeOver(
    _ request: ClaimRequest, _ held: TakeOverGuard, now: BootInstant = now
  ) -> Bool {
    held.permitted(request, now: now).takeOver != .never
  }

  @Test func `a record whose outcome waits for the store is not taken over`() {
    let held = TakeOverGuard()
    let (mine, other) = (Self.request("a"), Self.request("b"))
    #expect(Self.mayTakeOver(mine, held))
    let owners = [mine.owner, OwnerToken(high: 3, low: 4)]
    var runs = owners.map { held.storing(mine.changed(owner: $0).granted) }
    while !runs.isEmpty {
      #expect(!Self.mayTakeOver(mine, held) && Self.mayTakeOver(other, held))
      #expect(held.isStoring(mine.id, mine.fingerprint) && !held.isStoring(other.id, other.fingerprint))
      runs.removeFirst()
    }
    #expect(Self.mayTakeOver(mine, held) && held.isEmpty)
    #expect(!held.isStoring(mine.id, mine.fingerprint))
  }

  @Test func `nothing is taken over until owners have repeated what a failed store did not take`() {
    let held = TakeOverGuard()
    held.storeFailed(at: Self.now)
    #expect(!Self.mayTakeOver(Self.request("a"), held, now: Self.now + 3499))
    #expect(Self.mayTakeOver(Self.request("a"), held, now: Self.now + 3500))
    #expect(!Self.mayTakeOver(Self.request("a", .never), held, now: Self.now + 3500))
    let slow = TakeOverGuard(callTime: 10_000)
    slow.storeFailed(at: Self.now)
    #expect(!Self.mayTakeOver(Self.request("a"), slow, now: Self.now + 22_499))
    #expect(Self.mayTakeOver(Self.request("a"), slow, now: Self.now + 22_500))
  }

  @Test func `only the commands of owners tell that a write may have been refused`() async {
    let held = TakeOverGuard()
    let base = ScriptedStore(loop: EmbeddedEventLoop())
    base.onWatch = { .unavailable("no right to subscribe") }
    base.markFailure = .refused("no memory")
    let store = MeasuredStore(
      base, metrics: Metrics(loops: 1).loops[0], failures: StoreFailureLog(logger: Logger(label: "test")),
      takeOvers: held)
    let request = Self.request("a")
    _ = try? await store.watch(request.id)
    _ = try? await store.list(after: nil)
    #expect(Self.mayTakeOver(request, held, now: .now))
    _ = try? await store.markUnknown(request.granted)
    #expect(!Self.mayTakeOver(request, held, now: .now))
  }
}
