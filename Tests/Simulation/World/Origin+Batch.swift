// Batches: each item is run, and the results take one of several forms.
extension Origin {
  /// The form of the results.
  private enum Form {
    /// These fit their items.
    case plain, shuffled, keyless
    /// Of these it is not certain which result is which item's.
    case tooFew, tooMany, foreignKey, keyTwice, partlyKeyed, memberTwice, noJSON, compressed

    /// Whether results of this form are certainly those of so many items.
    func fits(_ count: Int) -> Bool {
      switch self {
      case .plain, .shuffled, .keyless: true
      case .keyTwice, .partlyKeyed: count == 1
      default: false
      }
    }
  }

  /// Shares of a hundred.
  private static let fitting: [(Form, Double)] = [(.shuffled, 10), (.keyless, 10)]
  private static let odd: [(Form, Double)] = [
    (.tooFew, 4), (.tooMany, 3), (.foreignKey, 5), (.keyTwice, 3), (.partlyKeyed, 3),
    (.memberTwice, 2), (.noJSON, 2), (.compressed, 5),
  ]

  /// Runs each item, whose attempt has the number of the delivery that it came with.
  func runBatch(_ request: HTTPMessage, _ kind: Kind?, _ luck: Double, _ dice: Dice) -> (
    OriginResponse, [Run]
  ) {
    var dice = dice
    let (items, currency) = request.batch
    let form = dice.kind(of: Self.fitting + (isSick ? Self.odd : [])) ?? .plain
    var (status, end) = kind?.fate ?? (201, .final)
    if end == .final, status == 201, !form.fits(items.count) { end = .unknown }
    let caller = request.fields["authorization"] ?? ""
    let number = request.fields["idempotency-key"] ?? ""
    if request.fields["idempotency-attempt"] != nil || request.fields["idempotency-request-id"] != nil {
      judge.violation(8, nil, "batch \(number) has one attempt or id")
    }
    let runs = items.map { item in
      serial += 1
      let run = Run(
        serial: serial, record: Batch.record(caller, item.key), id: "", attempt: Int(number) ?? 0,
        payload: item.payload(in: currency), status: status, end: end, at: schedule.now,
        isLarge: kind == .large)
      judge.ran(run)
      return run
    }
    let around =
      "\"serial\": \(runs.first?.serial ?? 0), \"caller\": \"\(caller)\", \"delivery\": \(number)"
    let body: String
    if status == 201 {
      let padding = Int(luck * (kind == .large ? 100_000 : 300))
      var results = zip(items, runs).map { Self.result($0.key, $1, caller, number) }
      let text = String(repeating: "x", count: padding)
      results[0] = "\(results[0].dropLast()), \"text\": \"\(text)\"}"
      if form == .keyless { results = results.map { Self.keyless($0) } }
      for (run, result) in zip(runs, results) { run.content = result }
      body = Self.body(form, results, around)
    } else {
      let ends = zip(items, runs).map { "{\"id\": \"\($0.key)\", \"serial\": \($1.serial)}" }
      body = "{\(around), \"batch\": [\(ends.joined(separator: ", "))]}"
    }
    let coding = form == .compressed ? [("Content-Encoding", "gzip")] : []
    let fields = [("X-Run", "\(runs.first?.serial ?? 0)")] + coding + (kind?.fields ?? [])
    let response = OriginResponse(
      status: status, fields: fields, body: body, isChunked: kind == .chunked)
    return (response, runs)
  }

  private static func result(_ key: String?, _ run: Run, _ caller: String, _ number: String) -> String {
    let id = key.map { "\"id\": \"\($0)\", " } ?? ""
    return "{\(id)\"serial\": \(run.serial), \"caller\": \"\(caller)\", \"delivery\": \(number)}"
  }

  private static func body(_ form: Form, _ results: [String], _ around: String) -> String {
    var results = results
    let form = form.fits(1) && results.count == 1 && form != .keyless ? .plain : form
    let last = results.count - 1
    switch form {
    case .plain, .keyless, .memberTwice, .noJSON, .compressed: break
    case .shuffled: results.append(results.removeFirst())
    case .tooFew: results.removeLast()
    case .tooMany: results.append(results[0])
    case .foreignKey: results[last] = "{\"id\": \"another\", " + keyless(results[last]).dropFirst()
    case .keyTwice:
      let first = JSONText.member("id", of: results[0]) ?? ""
      results[last] = "{\"id\": \"\(first)\", " + keyless(results[last]).dropFirst()
    case .partlyKeyed: results[last] = keyless(results[last])
    }
    let more = form == .memberTwice ? ", \"took\": 1, \"took\": 1" : ""
    let end = form == .noJSON ? "" : "}"
    return "{\"results\": [\(results.joined(separator: ", "))], \(around)\(more)" + end
  }

  /// A result without its first member, which is its key.
  private static func keyless(_ result: String) -> String {
    "{" + result.drop { $0 != "," }.dropFirst(2)
  }
}
