// Clients that send batches: their items overlap, change their payload, and come again alone or in other company.
extension Clients {
  /// The payloads of an item: its own is changed or not, and so is what is around the items.
  private static let payloads = [(false, "eur"), (true, "eur"), (false, "usd"), (true, "usd")]

  /// Makes one delivery, and calls back with what it brought for each key.
  private func deliver(
    _ delivery: BatchDelivery, timeOut: Span, hangUp: Double? = nil,
    _ ended: @escaping ([String: Finding]) -> Void
  ) {
    let batch = delivery.batch
    let (node, begun) = (batch.dice.below(world.nodes.count), schedule.now)
    let judge = world.judge
    for (item, name) in zip(delivery.items, delivery.records) {
      judge.begun(name, item.payload(in: delivery.currency), at: node)
      judge.note(judge.records[name], "a client delivers \(delivery.number) to node \(node)")
    }
    exchange(delivery.text, with: node, timeOut, hangUp) { response in
      let findings = judge.findings(response, of: delivery)
      var ends: [String: Finding] = [:]
      for (index, item) in delivery.items.enumerated() {
        let payload = item.payload(in: delivery.currency)
        judge.delivered(
          delivery.records[index], payload, begun: begun, by: node, findings[index])
        if ends[item.key] == nil { ends[item.key] = findings[index] }
      }
      ended(ends)
    }
  }

  /// Delivers a batch until its items have ended, or the client has had enough.
  func pursue(
    _ batch: Batch, keys: [String]? = nil, attempt: Int = 0, pause: Double = 0.02,
    _ ended: @escaping () -> Void
  ) {
    let keys = keys ?? batch.keys
    var under = 1
    var left: Set<String> = []
    let arrive = { [self] (ends: [String: Finding]) in
      under -= 1
      left.formUnion(ends.filter(\.value.isRetryable).keys)
      guard under == 0 else { return }
      guard !left.isEmpty, attempt < 7 else { return end(batch, ended) }
      // The same again, or alone what did not end.
      let next = batch.dice.chance(0.5) ? keys.filter(left.contains) : batch.keys
      schedule.after(batch.dice.span(0, pause)) { [self] in
        pursue(batch, keys: next, attempt: attempt + 1, pause: min(1, pause * 2), ended)
      }
    }
    let isTwofold = batch.dice.chance(0.1)
    if isTwofold { under = 2 }
    let hangUp = batch.dice.chance(0.04) ? batch.dice.fraction() : nil
    let timeOut = batch.dice.span(0.3, 3)
    deliver(delivery(of: batch, keys), timeOut: timeOut, hangUp: hangUp, arrive)
    if isTwofold { deliver(delivery(of: batch, keys), timeOut: timeOut, arrive) }
  }

  private func end(_ batch: Batch, _ ended: @escaping () -> Void) {
    guard batch.dice.chance(0.2) else { return ended() }
    deliver(delivery(of: batch, batch.keys), timeOut: batch.dice.span(0.3, 3)) { _ in ended() }
  }

  /// A delivery in any order, now and then with a changed payload, or the same key twice.
  private func delivery(of batch: Batch, _ keys: [String]) -> BatchDelivery {
    var items = keys.shuffled(using: &batch.dice).map {
      batch.item($0, isOther: batch.dice.chance(0.02))
    }
    if batch.dice.chance(0.05) {
      items.append(
        batch.item(keys[batch.dice.below(keys.count)], isOther: batch.dice.chance(0.5)))
    }
    let currency = batch.dice.chance(0.02) ? "usd" : "eur"
    return batch.delivery(of: items, currency: currency, waits: !batch.dice.chance(0.1))
  }

  /// Delivers a batch in calm weather until each item has ended, or a time is over.
  func conclude(_ batch: Batch, until limit: Moment, _ ended: @escaping () -> Void) {
    conclude(batch, batch.keys.map { ($0, 0) }, until: limit, ended)
  }

  /// - Parameter open: The keys that have not ended, each with the payload that is tried next.
  private func conclude(
    _ batch: Batch, _ open: [(key: String, payload: Int)], until limit: Moment,
    _ ended: @escaping () -> Void
  ) {
    guard let least = open.map(\.payload).min(), schedule.now < limit else { return ended() }
    let currency = Self.payloads[least].1
    let now = open.filter { Self.payloads[$0.payload].1 == currency }
    let items = now.map { batch.item($0.key, isOther: Self.payloads[$0.payload].0) }
    let delivery = batch.delivery(of: items, currency: currency, waits: true)
    deliver(delivery, timeOut: Span(seconds: 10)) { [self] ends in
      let left = open.compactMap { key, payload -> (key: String, payload: Int)? in
        guard let end = ends[key] else { return (key, payload) }
        if end.word == "payload_mismatch", payload + 1 < Self.payloads.count {
          return (key, payload + 1)
        }
        return end.isRetryable ? (key, payload) : nil
      }
      schedule.after(Span(seconds: 0.05)) { [self] in
        conclude(batch, left, until: limit, ended)
      }
    }
  }
}
