/// The end of a delivery for its client.
struct Finding {
  var status = 0
  /// The word of the response: a state of Semel's, or the code of a problem.
  var word = "none"
  var isRetryable = true
  /// The response, as all deliveries of an intent must have it; `nil` without an outcome.
  var response: String?
  /// The body of the response, or the part of an item; `nil` if that is not one run's.
  var content: String?
  /// The serial in the response's field.
  var run: Int?
  var serial: Int?
  var caller: String?
  var taken: Int?
  var original: Int?

  var isOutcome: Bool { word == "executed" || word == "replayed" }
}

extension Finding {
  /// The fields of a response that are about its origin and not its content.
  private static let passing: Set = [
    "idempotency-status", "idempotent-replayed", "idempotency-recorded-at", "idempotency-expires",
    "date", "age",
    "connection", "keep-alive", "transfer-encoding", "content-length",
  ]

  init(_ response: HTTPMessage) {
    self.init()
    status = response.status
    isRetryable = false
    if response.fields["content-type"] == "application/problem+json" {
      word = response.member("code") ?? "?"
      isRetryable = response.member("retryable") == "true"
      original = response.member("original_status").flatMap { Int($0) }
      return
    }
    let label = response.fields["idempotency-status"] ?? "?"
    word = label.hasSuffix("; kept=no") ? String(label.dropLast(9)) : label
    isRetryable = word == "not-stored" || word == "unknown"
    let fields = response.fields.filter { !Self.passing.contains($0.key) }
      .sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(separator: ", ")
    self.response = "\(response.status) \(fields) \(response.text)"
    content = response.text
    run = response.fields["x-run"].flatMap { Int($0) }
    serial = response.member("serial").flatMap { Int($0) }
    caller = response.member("caller")
    taken = response.member("taken").flatMap { Int($0) }
  }
}
