import Idempotency
import Logging
import Loop
import NIOCore
import Telemetry
import Wire

/// The part of a run that owns a record: forward, capture, record, answer.
extension RequestRunner {
  /// How an owner's run ended.
  enum OwnerEnd { case done, becomeDuplicate }

  /// Forward: the one sending that the claim allows, and whatever comes of it.
  @inline(never)
  func forward(
    _ call: KeyedCall, _ claim: Claim
  ) async throws(Problem) -> OwnerEnd {
    delivery.record.attempt = claim.attempt
    delivery.record.retry = RetryCause(claim)
    let held = worker.hold(claim, for: delivery, by: call.route)
    let sentAt = NIODeadline.now()
    delivery.record.trace?.forwardAt = sentAt.uptimeNanoseconds
    let answer = send(call, held)
    defer { answer.close() }
    let capture = AnswerCapture(of: answer, route: call.route, claim: claim, delivery: delivery)
    do throws(UpstreamFailure) {
      let captured = try await capture.run(within: call.route.policy.timeToAnswer)
      delivery.record.upstreamMicroseconds = microseconds(since: sentAt)
      return await settle(captured, call, held)
    } catch {
      delivery.record.upstreamMicroseconds = microseconds(since: sentAt)
      return await lost(error, capture, call, held)
    }
  }

  /// Gives the backend's side the request, with the permit to send it once.
  @inline(never)
  private func send(_ call: KeyedCall, _ held: HeldClaim<Store>) -> Backend.Exchange {
    let upstream = call.route.policy.upstream
    return worker.backend.begin(
      UpstreamRequest(
        upstream: upstream, method: head.methodText, target: call.target.text,
        fields: UpstreamFields.make(
          for: delivery, call.target, to: upstream, id: call.id, attempt: held.claim.attempt,
          contentCoding: call.route.policy.contentCoding),
        body: call.upstreamBody(of: delivery), permit: held.permit, bindsConnection: head.bindsConnection))
  }

  /// Record, then answer.
  @inline(never)
  private func settle(
    _ captured: CapturedAnswer, _ call: KeyedCall, _ held: HeldClaim<Store>
  ) async -> OwnerEnd {
    let recordedAt = NIODeadline.now()
    delivery.record.trace?.recordAt = recordedAt.uptimeNanoseconds
    let action = call.exchange.answered(
      status: captured.head.status, steering: Steering(of: captured.head), isRenewed: held.isRenewalAsked)
    let stored: Exchange.StoredAction
    let label: AnswerLabel
    switch action {
    case .complete(let retention, let remember):
      let outcome = TraceStamp.put(
        delivery.record.trace, on: captured.outcome(by: call.route, method: head.method))
      let completion = Completion(outcome: outcome, retention: retention, remember: remember)
      label = .executed
      stored = await complete(completion, held, call)
    case .release(let release):
      label = .notStored
      stored = await giveBack(held, release, call)
    case .markUnknown:
      label = .unknown
      stored = await markUnknown(held, call)
    }
    delivery.record.recordMicroseconds = microseconds(since: recordedAt)
    return answer(captured, label, stored)
  }

  /// Answer: the client gets what the store now says.
  @inline(never)
  private func answer(
    _ captured: CapturedAnswer, _ label: AnswerLabel, _ stored: Exchange.StoredAction
  ) -> OwnerEnd {
    switch stored {
    case .answer, .answerAndKeepStoring:
      let isLate = delivery.answerState == .ended
      captured.answer(delivery, label: label)
      told(label, captured.head.status, isLate: isLate)
    case .refuseAndKeepStoring(let problem), .refuse(let problem):
      refuse(problem)
    case .replay(let record):
      replay(record, from: .store)
    case .becomeDuplicate:
      guard delivery.answerState == .none else {
        cut()
        return .done
      }
      return .becomeDuplicate
    }
    return .done
  }

  /// No complete answer: released where nothing was sent, else unknown; after a time-out still listened for.
  @inline(never)
  private func lost(
    _ failure: UpstreamFailure, _ capture: AnswerCapture<Backend.Exchange>, _ call: KeyedCall,
    _ held: HeldClaim<Store>
  ) async -> OwnerEnd {
    environment.logger.debug("no answer from the backend", metadata: ["failure": "\(failure)"])
    switch call.exchange.failed(failure) {
    case .release(let problem):
      let stored = await giveBack(held, .remembered, call)
      return refused(problem, stored)
    case .markUnknown(let problem):
      worker.metrics.add(.outcomesLost, route: call.route.number)
      await markUnknown(held)
      worker.end(held)
      refuse(problem)
    case .listen(let settle, let problem):
      worker.metrics.add(.outcomesLost, route: call.route.number)
      await markUnknown(held)
      refuse(problem)
      do throws(UpstreamFailure) {
        let captured = try await capture.run(within: settle)
        return await self.settle(captured, call, held)
      } catch {
        return await lost(error, capture, call, held)
      }
    case .giveUp:
      worker.end(held)
    }
    return .done
  }

  /// A refusal after a release, unless the record turned out to be somebody else's.
  private func refused(_ problem: Problem, _ stored: Exchange.StoredAction) -> OwnerEnd {
    switch stored {
    case .replay(let record):
      replay(record, from: .store)
      return .done
    case .becomeDuplicate:
      return .becomeDuplicate
    case .refuse(let problem):
      refuse(problem)
      return .done
    case .answer, .answerAndKeepStoring, .refuseAndKeepStoring:
      refuse(problem)
      return .done
    }
  }

  private func told(_ label: AnswerLabel, _ status: Int, isLate: Bool) {
    guard !isLate else { return worker.metrics.add(.lateAnswers, route: delivery.record.routeNumber) }
    delivery.record.outcome = RequestOutcome(label)
    delivery.record.failure = FailureCategory(status: status)
  }
}
