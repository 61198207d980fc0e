import Dispatch
import Glibc
import Synchronization
import TestSupport

/// A server that does what the draft demands, but for one flaw.
final class PlantedServer: Sendable {
  private struct Record {
    var payload: String
    /// Signalled by every duplicate, so that a slow run lasts until there is one.
    let duplicates = DispatchSemaphore(value: 0)
    let done = DispatchGroup()
    var response: PlantedResponse?
  }

  private struct State {
    var records: [String: Record] = [:]
    var executions: [ContinuousClock.Instant] = []
  }

  /// The next step of a request with a key.
  private enum Step {
    case run(Record)
    case respond(PlantedResponse)
    case wait(Record)
  }

  private let flaw: Flaw?
  private let statusInFlight: Int
  private let runTime: Duration
  private let oracleLag: Duration
  private let areResultsAlike: Bool
  private let state = Mutex(State())
  private let server = Mutex<RawServer?>(nil)

  var port: Int { server.withLock { $0?.port ?? 0 } }
  var executed: Int { state.withLock { $0.executions.count } }

  /// Starts a server.
  ///
  /// - Parameters:
  ///   - statusInFlight: The status of a duplicate in flight.
  ///   - runTime: The duration of each run, at whose end it is executed.
  ///   - oracleLag: The time after which an execution is counted.
  ///   - areResultsAlike: Whether the results of all runs have the same bytes.
  init(
    _ flaw: Flaw? = nil, statusInFlight: Int = 409, runTime: Duration = .zero, oracleLag: Duration = .zero,
    areResultsAlike: Bool = false
  ) throws {
    self.flaw = flaw
    self.statusInFlight = statusInFlight
    self.runTime = runTime
    self.oracleLag = oracleLag
    self.areResultsAlike = areResultsAlike
    let raw = try RawServer { [weak self] connection in
      var number = 0
      while let self {
        number += 1
        let request = PlantedRequest(try connection.readRequest())
        try connection.write(self.response(to: request, number: number).text)
      }
    }
    server.withLock { $0 = raw }
  }

  func close() { server.withLock { $0?.close() } }

  private func response(to request: PlantedRequest, number: Int) -> PlantedResponse {
    switch (request.method, request.path) {
    case ("GET", "/executed"): return PlantedResponse(200, "{\"executed\":\(counted)}")
    case ("GET", "/docs") where flaw == .documentsNothing: return PlantedResponse(404, "")
    case ("GET", "/docs"):
      return PlantedResponse(200, flaw == .hidesExpiry ? "Send a key." : "Keys expire after 24 hours.")
    case ("OPTIONS", _): return PlantedResponse(204, "")
    case ("GET", _): return PlantedResponse(200, "[]")
    default: return order(request, number)
    }
  }

  private var counted: Int {
    let latest = ContinuousClock.now - oracleLag
    return state.withLock { $0.executions.count { $0 <= latest } }
  }

  private func order(_ request: PlantedRequest, _ number: Int) -> PlantedResponse {
    let isKnown = request.values("authorization").first?.hasPrefix("Bearer ") == true
    let key: PlantedKey = PlantedKey(request.values("idempotency-key"), flaw)
    if flaw == .examinesKeysFirst, case .malformed = key { return refusal(400, "key-malformed") }
    if flaw != .replaysWithoutCredentials && !isKnown { return refusal(401, "unauthorized") }
    switch key {
    case .none where flaw == .runsWithoutKey:
      return run(request)
    case .none:
      if flaw == .runsBeforeItRefuses { _ = run(request) }
      return refusal(400, "key-missing")
    case .malformed where flaw == .ignoresMalformedKeys:
      return run(request)
    case .malformed where flaw == .failsOnQuotes:
      return refusal(500, "failed")
    case .malformed:
      return refusal(400, "key-malformed")
    case .key where flaw == .ignoresKeys || flaw == .runsPipelinedDuplicates && number > 1:
      return run(request)
    case .key(let key)
    where !isKnown && !state.withLock({ $0.records.keys.contains { $0.hasSuffix(" \(key)") } }):
      return refusal(401, "unauthorized")
    case .key(let key):
      return keyed(request, record: recordName(request, key))
    }
  }

  private func recordName(_ request: PlantedRequest, _ key: String) -> String {
    let isShared =
      [.sharesKeysAmongCallers, .comparesPayloadsAmongCallers, .replaysWithoutCredentials].contains(flaw)
    let caller = isShared ? "" : request.values("authorization").joined()
    let method = flaw == .replaysForOtherMethods ? "" : request.method
    let payload = flaw == .runsOtherPayloads ? request.body : ""
    return "\(caller) \(method) \(request.path) \(payload) \(key)"
  }

  private func keyed(_ request: PlantedRequest, record name: String) -> PlantedResponse {
    let fingerprint =
      request.body + (flaw == .fingerprintsHeaders ? request.values("x-request-id").joined() : "")
    switch state.withLock({ step(&$0, name, fingerprint) }) {
    case .respond(let response):
      return response
    case .wait(let record):
      _ = record.done.wait(timeout: .now() + 10)
      return state.withLock { $0.records[name]?.response } ?? refusal(409, "in-flight")
    case .run(let record):
      if request.body.contains("slow") { _ = record.duplicates.wait(timeout: .now() + 10) }
      let response = run(request)
      state.withLock { $0.records[name]?.response = response }
      record.done.leave()
      return response
    }
  }

  private func step(_ state: inout State, _ name: String, _ fingerprint: String) -> Step {
    if flaw == .forgetsTheOldest, state.records.count == 500 { state.records = [:] }
    guard let record = state.records[name] else {
      let record = Record(payload: fingerprint)
      record.done.enter()
      state.records[name] = record
      return .run(record)
    }
    record.duplicates.signal()
    guard record.payload == fingerprint || flaw == .comparesNoPayloads else {
      if flaw == .forgetsAfterMismatch { state.records[name] = nil }
      return .respond(mismatch(record))
    }
    if let response = record.response {
      return .respond(flaw == .limitsTheRate ? refusal(429, "slow down") : replay(response))
    }
    switch flaw {
    case .runsDuplicatesInFlight:
      let second = Record(payload: fingerprint)
      second.done.enter()
      second.duplicates.signal()
      return .run(second)
    case .waitsInFlight: return .wait(record)
    case .otherStatusInFlight: return .respond(refusal(423, "in-flight"))
    default: return .respond(refusal(statusInFlight, "in-flight", "Retry-After: 1\r\n"))
    }
  }

  private func mismatch(_ record: Record) -> PlantedResponse {
    if flaw == .quotesFirstRequestOnMismatch {
      return refusal(422, "The first request was \(record.payload.filter { $0 != "\"" })")
    }
    return refusal(flaw == .otherStatusOnMismatch ? 400 : 422, "key-used")
  }

  private func replay(_ response: PlantedResponse) -> PlantedResponse {
    var replay = response
    replay.fields = flaw == .losesFields ? "" : replay.fields + "Idempotent-Replayed: true\r\n"
    if flaw == .replaysWithOtherStatus, replay.status == 201 { replay.status = 200 }
    if flaw == .changesReplays { replay.body = replay.body.dropLast() + ",\"replayed\":true}" }
    return replay
  }

  private func run(_ request: PlantedRequest) -> PlantedResponse {
    usleep(UInt32(runTime / .microseconds(1)))
    let number = state.withLock { state in
      state.executions.append(.now)
      return state.executions.count
    }
    if request.body.contains("fail") { return PlantedResponse(500, "{\"error\":\"no\"}") }
    if request.body.hasSuffix(":") { return PlantedResponse(400, "{\"error\":\"no JSON\"}") }
    if areResultsAlike { return PlantedResponse(201, "{\"state\":\"accepted\"}") }
    return PlantedResponse(201, "{\"id\":\"order-\(number)\"}", "Location: /orders/\(number)\r\n")
  }

  private func refusal(_ status: Int, _ title: String, _ fields: String = "") -> PlantedResponse {
    guard flaw != .describesNothing else {
      return PlantedResponse(status, "no", "Content-Type: text/plain\r\n")
    }
    return PlantedResponse(
      status, "{\"title\":\"\(title)\"}",
      fields + "Link: </docs>; rel=\"describedby\"\r\nContent-Type: application/problem+json\r\n")
  }
}

/// A response of the planted server.
struct PlantedResponse {
  var status: Int
  var body: String
  var fields: String

  init(_ status: Int, _ body: String, _ fields: String = "") {
    self.status = status
    self.body = body
    self.fields = fields
  }

  var text: String {
    let length = status == 204 ? "" : "Content-Length: \(body.utf8.count)\r\n"
    let type = fields.contains("Content-Type") ? "" : "Content-Type: application/json\r\n"
    return "HTTP/1.1 \(status) Whatever\r\n\(fields)\(type)\(length)\r\n\(status == 204 ? "" : body)"
  }
}

/// A key by the rules of a strict RFC 8941 string of at most 255 characters.
enum PlantedKey {
  case none
  case malformed
  case key(String)

  init(_ values: [String], _ flaw: Flaw?) {
    guard let value = values.first else {
      self = .none
      return
    }
    if flaw == .takesEmptyKeys, value.isEmpty || value == "\"\"" {
      self = .key("")
      return
    }
    let content = value.prefix { $0 != ";" }.dropFirst().dropLast()
    let isString = value.hasPrefix("\"") && value.prefix { $0 != ";" }.hasSuffix("\"") && !content.isEmpty
    let isPlain = content.count <= 255 && content.unicodeScalars.allSatisfy { 0x20..<0x7F ~= $0.value }
    let hasQuotes = content.contains("\"") || content.contains("\\")
    guard isString, isPlain, !hasQuotes, values.count == 1 || flaw == .takesTwoKeys else {
      self = flaw == .refusesQuotedKeys && !value.isEmpty && !value.contains("\"") ? .key(value) : .malformed
      return
    }
    if flaw == .refusesQuotedKeys {
      self = .malformed
    } else {
      self = .key(Self.compared(String(content), flaw))
    }
  }

  /// The part of a key that the server compares.
  private static func compared(_ key: String, _ flaw: Flaw?) -> String {
    switch flaw {
    case .joinsKeys: String(key.split(separator: "/").last ?? "")
    case .dropsSeparators: key.filter { $0.isLetter || $0.isNumber }
    case .ignoresLetterCase: key.lowercased()
    case .cutsKeys: String(key.prefix(8))
    case .cutsLongKeys: String(key.prefix(64))
    default: key
    }
  }
}
