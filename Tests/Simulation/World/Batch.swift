/// Several things that a client wants done once each. Other batches have some of them, too.
final class Batch {
  /// The successive batches that share items, and those items.
  private static let batchesOfPool = 4
  private static let itemsOfPool = 8

  let number: Int
  let caller: String
  let keys: [String]
  var dice: Dice
  private var deliveries = 0

  init(_ number: Int, seed: UInt64) {
    self.number = number
    var dice = Dice(seed, "batch", number)
    let pool = number / Self.batchesOfPool
    caller = "caller\(pool % 7)"
    // Two callers use the same keys now and then, for things of their own.
    let shared = pool % 10 == 9 ? pool - 1 : pool
    let all = (0..<Self.itemsOfPool).map { "b\(shared)-\($0)" }
    let count = [1, 1, 2, 3, 4, 6][dice.below(6)]
    keys = Array(all.shuffled(using: &dice).prefix(count))
    self.dice = dice
  }

  func record(_ key: String) -> String { Self.record(caller, key) }

  static func record(_ caller: String, _ key: String) -> String {
    "\(caller)|/\(Rule.batch.rawValue)|\(key)"
  }

  func delivery(of items: [BatchItem], currency: String, waits: Bool) -> BatchDelivery {
    deliveries += 1
    return BatchDelivery(
      batch: self, number: number * 100 + deliveries, items: items, currency: currency, waits: waits)
  }

  /// An item, of which there are two payloads.
  func item(_ key: String, isOther: Bool) -> BatchItem {
    let other = isOther ? ", \"other\": true" : ""
    return BatchItem(
      key: key, text: "{\"id\": \"\(key)\", \"item\": \"\(key) of \(caller)\"\(other)}")
  }
}

/// One item of a delivery.
struct BatchItem {
  let key: String
  let text: String

  init(key: String, text: String) {
    self.key = key
    self.text = text
  }

  /// The item that a text states.
  init(_ text: String) {
    self.init(key: JSONText.member("id", of: text) ?? "?", text: text)
  }

  /// Its payload, of which the batch's surroundings are a part.
  func payload(in currency: String) -> String { "\(text) in \(currency)" }
}

/// One request, whose number both ends know: Semel passes on the client's key as it comes.
struct BatchDelivery {
  let batch: Batch
  let number: Int
  let items: [BatchItem]
  let currency: String
  let waits: Bool

  /// The record of each item.
  var records: [String] { items.map { batch.record($0.key) } }

  var text: String {
    let orders = items.map(\.text).joined(separator: ", ")
    let body = "{\"orders\": [\(orders)], \"currency\": \"\(currency)\"}"
    return """
      POST /\(Rule.batch.rawValue) HTTP/1.1\r
      Host: shop.example\r
      Authorization: \(batch.caller)\r
      Idempotency-Key: \(number)\r
      X-Shop: main\r
      Content-Type: application/json\r
      \(waits ? "" : "Prefer: wait=0\r\n")Content-Length: \(body.utf8.count)\r
      \r
      \(body)
      """
  }
}

extension HTTPMessage {
  /// The items of a request, and what is around them.
  var batch: (items: [BatchItem], currency: String) {
    let orders = JSONText.elements(of: "orders", in: text)
    return (orders?.elements.map { BatchItem($0) } ?? [], member("currency") ?? "?")
  }
}
