// Batches on the wire: requests of several items, each of which is an intent of its own, and responses to them.
extension Judge {
  /// Notes the items of a batch that a node has sent to the backend.
  func sentBatch(_ message: HTTPMessage, by node: Int) {
    let caller = message.fields["authorization"] ?? ""
    let number = Int(message.fields["idempotency-key"] ?? "") ?? 0
    for item in message.batch.items {
      sent(Batch.record(caller, item.key), attempt: number, by: node)
    }
  }

  /// The findings of a response, one for each item of its delivery.
  func findings(_ response: HTTPMessage?, of delivery: BatchDelivery) -> [Finding] {
    guard let response else { return delivery.items.map { _ in Finding() } }
    let whole = Finding(response)
    if response.fields["content-type"] == "application/problem+json" {
      return delivery.items.map { _ in whole }
    }
    if response.fields["idempotency-status"]?.contains("batch") == true {
      return assembled(response, of: delivery)
    }
    // The backend's own, to all items together.
    let runs = JSONText.elements(of: "batch", in: response.text)?.elements ?? []
    let serials = runs.map {
      (JSONText.member("id", of: $0), JSONText.member("serial", of: $0).flatMap { Int($0) })
    }
    return delivery.items.map { item in
      var finding = whole
      finding.content = nil
      finding.serial = serials.first { $0.0 == item.key }?.1 ?? whole.serial
      return finding
    }
  }

  private func assembled(_ response: HTTPMessage, of delivery: BatchDelivery) -> [Finding] {
    let results = JSONText.elements(of: "results", in: response.text)
    let elements = results?.elements ?? []
    guard elements.count == delivery.items.count else {
      misfit(delivery, "\(elements.count) elements for \(delivery.items.count) items")
      return delivery.items.map { _ in Finding() }
    }
    let findings = elements.map { Finding(element: $0, response.status, of: delivery) }
    checkLabel(response, findings, of: delivery)
    let around = results.flatMap { JSONText.member("delivery", of: $0.rest) }
    if let around, around != "\(delivery.number)" {
      misfit(delivery, "is in what delivery \(around) got")
    }
    return findings
  }

  private func checkLabel(
    _ response: HTTPMessage, _ findings: [Finding], of delivery: BatchDelivery
  ) {
    let label = response.fields["idempotency-status"] ?? ""
    let counts = label.split(separator: ";").dropFirst().map { part in
      part.split(separator: "=").last.flatMap { Int($0) } ?? -1
    }
    let results = findings.count { $0.serial != nil }
    let expected = [
      findings.count { $0.word == "executed" }, findings.count { $0.word == "replayed" },
      findings.count - results,
    ]
    // Where the store has lost the record, another delivery may have been granted it and recorded this one's outcome.
    let hasEachResult = counts.count == 3 && counts[0] + counts[1] == expected[0] + expected[1]
    if counts != expected {
      misfit(delivery, "\(label) of \(expected)", mayBeLost: hasEachResult && counts[2] == expected[2])
    }
    if (response.status == 207) != (results < findings.count) {
      misfit(delivery, "\(response.status), with \(results) results of \(findings.count) items")
    }
  }

  private func misfit(_ delivery: BatchDelivery, _ text: String, mayBeLost: Bool = false) {
    violation(
      8, records[delivery.records[0]], "delivery \(delivery.number): \(text)", mayBeLost: mayBeLost)
  }
}

extension Finding {
  /// One element of a batch's response.
  fileprivate init(element: String, _ status: Int, of delivery: BatchDelivery) {
    self.init()
    let member = { JSONText.member($0, of: element) }
    if let code = member("code") {
      self.status = member("status").flatMap { Int($0) } ?? 0
      word = code
      isRetryable = member("retryable") == "true"
      original = member("original_status").flatMap { Int($0) }
      return
    }
    self.status = status
    word = member("delivery") == "\(delivery.number)" ? "executed" : "replayed"
    isRetryable = false
    response = element
    content = element
    serial = member("serial").flatMap { Int($0) }
    caller = member("caller")
  }
}
