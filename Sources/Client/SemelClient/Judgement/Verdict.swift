#if canImport(FoundationEssentials)
  package import FoundationEssentials
#else
  package import Foundation
#endif

/// All that one delivery's end says about its intent.
package struct Verdict: Hashable, Sendable {
  package var deliveryClass: DeliveryClass
  /// Whether the server speaks for the intent, as one that records outcomes does. Otherwise the response is about this
  /// delivery alone: a refusal may be that of a duplicate, whose first delivery was carried out.
  package var isProven = false
  /// Whether this delivery may have been carried out, although its end is no outcome.
  package var mayHaveRun = false
  /// Whether the same key may yet get a response.
  package var isRetryable = true
  /// Whether the server has too much to do.
  package var isThrottled = false
  /// The wait that the server asked for.
  package var retryAfter: Duration?
  package var wasReplayed = false
  /// The time at which the server forgets the key.
  package var expires: Date?
  package var response: Response?

  package init(_ deliveryClass: DeliveryClass) {
    self.deliveryClass = deliveryClass
  }

  /// No response came.
  package init(_ failure: TransportError) {
    switch failure {
    case .notSent: self.init(.notSent)
    case .lost:
      self.init(.unknown)
      mayHaveRun = true
    }
  }

  package var problem: Problem? { response?.problem }
}
