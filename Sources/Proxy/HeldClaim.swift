import Idempotency
import Loop
import NIOCore
import Telemetry

/// A claim while its exchange lives: renewed at a third of its lease, so that a slow backend never loses it to a retry.
///
/// The labels `owning` and `sent` of Tests/Model/claim.pml. Confined to its event loop. Ends by `end()`, which its
/// runner must call.
final class HeldClaim<Store: RecordStore>: @unchecked Sendable {
  let claim: Claim
  /// The request for which it was granted.
  let delivery: Delivery
  let permit: SendPermit
  private let store: Store
  /// `nil` where the route never runs a request without the store.
  private let known: KnownRecords?
  private let context: EventLoopContext
  private let metrics: LoopMetrics
  private var timer: LoopTimers.Token?
  private var isRenewed = true
  /// Whether a renewal was ever asked for.
  private(set) var isRenewalAsked = false
  /// When the last acknowledged grant was asked for.
  private var grantedAt: BootInstant
  private var hasLapsed = false

  init(
    _ claim: Claim, for delivery: Delivery, store: Store, known: KnownRecords?, context: EventLoopContext,
    metrics: LoopMetrics
  ) {
    self.claim = claim
    self.delivery = delivery
    self.store = store
    self.known = known
    self.context = context
    self.metrics = metrics
    grantedAt = claim.askedAt
    permit = SendPermit(askedAt: claim.askedAt, lease: claim.lease)
    schedule(in: claim.lease / 3)
  }

  /// Lets the lease lapse from now on: the record says `unknown`, or has ended.
  func stopRenewing() {
    isRenewed = false
    if let timer { context.timers.stop(timer) }
    timer = nil
  }

  /// Notes the record's end for the time when the store is away.
  ///
  /// - Parameter outcome: the store's reply; `nil` where it gave none.
  func note(_ end: KnownRecord.OwnEnd, _ outcome: OwnerOutcome? = nil) {
    known?.change(claim.id) { $0 = $0?.ended(by: claim, as: end, outcome, now: $1) }
  }

  private func schedule(in span: Milliseconds) {
    timer = context.timers.start(milliseconds: span.count) { [self] in
      timer = nil
      context.task { await self.renew() }
    }
  }

  private func renew() async {
    let askedAt = BootInstant(nanoseconds: bootTimeNanoseconds())
    isRenewalAsked = true
    if !hasLapsed, askedAt - grantedAt >= claim.lease {
      hasLapsed = true
      metrics.add(.leasesLapsed)
    }
    do {
      let outcome = try await store.renew(claim)
      guard isRenewed else { return }
      switch outcome {
      case .done:
        metrics.add(.leasesRenewed)
        grantedAt = askedAt
        permit.renewed(askedAt: askedAt, lease: claim.lease)
        schedule(in: claim.lease / 3)
      case .lost:
        // What that means for the client is told when the owner ends.
        stopRenewing()
      }
    } catch {
      if isRenewed { schedule(in: claim.lease / 10) }
    }
  }
}
