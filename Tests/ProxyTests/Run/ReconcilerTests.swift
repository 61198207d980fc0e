import Idempotency
import NIOCore
import Synchronization
import Testing
import Wire

@testable import Proxy

/// The queries about unknown outcomes that are under way at once.
struct ReconcilerTests {
  /// A backend that responds to each query when the test says so.
  private final class HeldProbe: OutcomeProbe {
    private let queries = Mutex<[UnsafeContinuation<ProbeResponse?, Never>]>([])

    var count: Int { queries.withLock(\.count) }

    func send(_ query: ProbeQuery) async -> ProbeResponse? {
      await withUnsafeContinuation { continuation in queries.withLock { $0.append(continuation) } }
    }

    func respond(to index: Int, _ status: Int) {
      queries.withLock { $0[index] }.resume(returning: ProbeResponse(status: status, body: nil))
    }
  }

  private let probe = HeldProbe()
  private let query = ProbeQuery(
    upstream: UpstreamSettings(name: "u", address: .unix(path: "/s")), target: "/", host: "h", fields: [],
    timeout: .seconds(1), maxBody: 0)
  private let id = RecordID(Digest256.sha256(of: Array("k".utf8)))
  private let start = BootInstant(nanoseconds: 0)
  private var loss: ClaimRequest.SeenLoss { ClaimRequest.SeenLoss(age: .seconds(30), seenAt: start) }

  private func arrived(_ count: Int) async { while probe.count < count { await Task.yield() } }

  @Test(.timeLimit(.minutes(1)))
  func `a query about an earlier attempt says nothing of a later one`() async {
    let reconciler = Reconciler(probe)
    async let first = reconciler.response(to: query, about: AttemptID(record: id, attempt: 1), lostAt: loss)
    await arrived(1)
    async let second = reconciler.response(to: query, about: AttemptID(record: id, attempt: 2), lostAt: loss)
    await arrived(2)
    probe.respond(to: 0, 404)
    #expect(await first?.status == 404)
    probe.respond(to: 1, 200)
    #expect(await second?.status == 200)
  }

  @Test(.timeLimit(.minutes(1))) @MainActor
  func `deliveries that have seen one loss share a query, and a later loss of the attempt has no part in it`()
    async
  {
    let reconciler = Reconciler(probe)
    let attempt = AttemptID(record: id, attempt: 1)
    let (query, loss) = (query, loss)
    async let first = reconciler.response(to: query, about: attempt, lostAt: loss)
    await arrived(1)
    let later = start + .seconds(5)
    let second = Task { @MainActor in
      await reconciler.response(
        to: query, about: attempt, lostAt: ClaimRequest.SeenLoss(age: .seconds(35), seenAt: later))
    }
    // The main actor runs its tasks in turn: once this one has run, the one before it waits.
    await Task { @MainActor in }.value
    // The owner came back to life after the query had begun, and lost another response.
    let another = ClaimRequest.SeenLoss(age: .seconds(4), seenAt: later)
    #expect(await reconciler.response(to: query, about: attempt, lostAt: another) == nil)
    probe.respond(to: 0, 404)
    #expect(await first?.status == 404)
    #expect(await second.value?.status == 404)
    #expect(probe.count == 1)
  }

  @Test(.timeLimit(.minutes(1)))
  func `a query beyond eight at once gets no response, and one after them does`() async {
    let reconciler = Reconciler(probe)
    let (query, id, loss) = (query, id, loss)
    let max = 8
    await withTaskGroup(of: Int?.self) { group in
      for attempt in 1...max {
        group.addTask {
          await reconciler.response(to: query, about: AttemptID(record: id, attempt: attempt), lostAt: loss)?
            .status
        }
        await arrived(attempt)
      }
      #expect(
        await reconciler.response(to: query, about: AttemptID(record: id, attempt: max + 1), lostAt: loss)
          == nil)
      #expect(probe.count == max)
      probe.respond(to: 0, 200)
      #expect(await group.next() == 200)
      group.addTask {
        await reconciler.response(to: query, about: AttemptID(record: id, attempt: max + 1), lostAt: loss)?
          .status
      }
      await arrived(max + 1)
      for index in 1...max { probe.respond(to: index, 404) }
      for await status in group { #expect(status == 404) }
    }
  }
}
