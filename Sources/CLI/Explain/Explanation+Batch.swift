import Idempotency
import NIOCore
import Proxy
import Wire

extension Explanation {
  mutating func explainBatch(_ batch: BatchCall) {
    let policy = batch.route.policy
    add(
      "batch",
      "\(batch.places.count) items of at most \(batch.policy.maxItems), \(batch.calls.count) records; "
        + "items that are not recorded yet are sent as one batch")
    guard let first = batch.calls.first else { return }
    explainDigests(first)
    add(
      "fingerprint",
      "of each item and of what stands around the items, by recipe \(policy.recipe.text); of the first item "
        + String(first.fingerprint.digest.text.prefix(16)))
    let records = batch.places.enumerated().map { Self.shown($1, at: $0, of: batch) }
    // The backend gets no Idempotency-Request-Id, since a request has several.
    explainRecords(records, policy, name: nil)
  }

  private static func shown(_ place: Int?, at index: Int, of batch: BatchCall) -> String {
    guard let place else {
      return "item \(index): refused, since an earlier item has its key and another payload"
    }
    let call = batch.calls[place]
    let isRepeated = batch.items[place] != index
    return "item \(index): key \(shown(call.key)), \(call.id.text)"
      + (isRepeated ? ", with item \(batch.items[place])" : "")
  }
}
