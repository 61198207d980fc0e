import Idempotency
import Logging
import NIOEmbedded
import Platform
import Telemetry
import Testing

@testable import Proxy

/// Claims that take nothing over while the store fails.
struct TakeOverPauseTests {
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
    _ request: ClaimRequest, _ pause: TakeOverPause, now: BootInstant = now
  ) -> Bool {
    pause.permitted(request, now: now).takeOver != .never
  }

  @Test func `nothing is taken over until owners have repeated what a failed store did not take`() {
    let pause = TakeOverPause()
    pause.storeFailed(at: Self.now)
    #expect(!Self.mayTakeOver(Self.request("a"), pause, now: Self.now + 3499))
    #expect(Self.mayTakeOver(Self.request("a"), pause, now: Self.now + 3500))
    #expect(!Self.mayTakeOver(Self.request("a", .never), pause, now: Self.now + 3500))
    let slow = TakeOverPause(callTime: 10_000)
    slow.storeFailed(at: Self.now)
    #expect(!Self.mayTakeOver(Self.request("a"), slow, now: Self.now + 22_499))
    #expect(Self.mayTakeOver(Self.request("a"), slow, now: Self.now + 22_500))
  }

  @Test func `only the commands of owners tell that a write may have been refused`() async {
    let pause = TakeOverPause()
    let base = ScriptedStore(loop: EmbeddedEventLoop())
    base.onWatch = { .unavailable("no right to subscribe") }
    base.markFailure = .refused("no memory")
    let store = MeasuredStore(
      base, metrics: Metrics(loops: 1).loops[0], failures: StoreFailureLog(logger: Logger(label: "test")),
      takeOvers: pause)
    let request = Self.request("a")
    _ = try? await store.watch(request.id)
    _ = try? await store.list(after: nil)
    #expect(Self.mayTakeOver(request, pause, now: .now))
    _ = try? await store.markUnknown(request.granted)
    #expect(!Self.mayTakeOver(request, pause, now: .now))
  }
}
