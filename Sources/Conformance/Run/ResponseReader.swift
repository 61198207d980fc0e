import NIOCore
import Wire

/// Decodes the responses of one connection, in the order of their requests. Pure: bytes in, outcomes out.
struct ResponseReader {
  /// The maximum size of a body, in MiB, into which a list of everything that was created must fit.
  static let maxBodyMiB = 8
  static let maxInterim = 64

  private var methods: ArraySlice<MessageHead.Method>
  private var decoder: ResponseDecoder
  private var input = ByteBuffer()
  private var current: RawResponse?
  private var interim = 0

  init(methods: [String]) {
    let known = methods.map { ResponseReader.method($0) }
    self.methods = known[...]
    decoder = ResponseDecoder(
      limits: HeadLimits(headBytes: 256 << 10, maxFields: 500), method: known.first ?? .other)
  }

  /// The outcomes that these bytes complete. After a malformed or endless response there are no more.
  mutating func receive(_ bytes: ByteBuffer) -> [Exchange.Outcome] {
    guard !methods.isEmpty else { return [] }
    input.writeImmutableBuffer(bytes)
    var outcomes: [Exchange.Outcome] = []
    do throws(WireError) {
      while !methods.isEmpty, let event = try decoder.next(&input) {
        guard let outcome = take(event) else { continue }
        outcomes.append(outcome)
        if case .endless = outcome { methods = [] }
      }
    } catch {
      outcomes.append(.none("no HTTP response: \(error.sentence)"))
      methods = []
    }
    // Otherwise the buffer would hold all bytes that ever came.
    input.discardReadBytes()
    return outcomes
  }

  /// The outcomes of what is left when the check waits no longer.
  mutating func abandon(_ reason: String) -> [Exchange.Outcome] {
    defer { methods = [] }
    return Array(repeating: .endless(reason), count: methods.count)
  }

  /// The outcomes of what is left when the connection ends.
  mutating func finish(_ reason: String) -> [Exchange.Outcome] {
    guard !methods.isEmpty else { return [] }
    let isComplete = decoder.finish() == .complete
    var outcomes: [Exchange.Outcome] = []
    if isComplete, let current { outcomes.append(.response(current)) }
    let text = current == nil ? reason : "\(reason) before the response was complete"
    outcomes += Array(repeating: .none(text), count: methods.count - outcomes.count)
    methods = []
    return outcomes
  }

  private mutating func take(_ event: ResponseDecoder.Event) -> Exchange.Outcome? {
    switch event {
    case .head(let response):
      guard !response.isInterim else {
        interim += 1
        return interim > Self.maxInterim ? .endless("more than \(Self.maxInterim) interim responses") : nil
      }
      interim = 0
      let head = response.head
      current = RawResponse(
        status: head.status,
        fields: head.fields.map {
          HeaderLine(name: head.string($0.nameRange), value: head.string($0.valueRange))
        })
    case .body(let bytes):
      guard let size = current?.body.count, size + bytes.readableBytes <= Self.maxBodyMiB << 20 else {
        return .endless("a body of more than \(Self.maxBodyMiB) MiB")
      }
      current?.body += bytes.readableBytesView
    case .end:
      guard let response = current else { return nil }
      current = nil
      methods = methods.dropFirst()
      if let next = methods.first { decoder.begin(next) }
      return .response(response)
    }
    return nil
  }

  private static func method(_ name: String) -> MessageHead.Method {
    switch name {
    case "GET": .get
    case "HEAD": .head
    case "POST": .post
    case "PUT": .put
    case "PATCH": .patch
    case "DELETE": .delete
    case "OPTIONS": .options
    default: .other
    }
  }
}

/// The likeness of the results that a run got under different keys. Each script has keys of its own, so that the first
/// deliveries of two scripts are two intents. Where they have the same result, equal results show no replay.
struct ResultLikeness {
  private let keysShareResults: Bool
  private let keysShareIDs: Bool

  init(_ evidence: [Script: Evidence], _ oracle: OracleSettings?) {
    // Keys that are malformed may be one key to the endpoint: they are compared with good ones alone.
    var good: [RawResponse] = []
    var others: [RawResponse] = []
    for (script, evidence) in evidence {
      guard let delivery = script.deliveries.first, delivery.key != Delivery.Key.none,
        delivery.with(\.key, Delivery().key) == Delivery(), let response = evidence[0], response.isSuccess
      else { continue }
      if delivery == Delivery() { good.append(response) } else { others.append(response) }
    }
    keysShareResults = Self.hasEqual(good.map(Result.init), others.map(Result.init))
    guard case .responses(let pointer)? = oracle else {
      keysShareIDs = false
      return
    }
    // Each response is parsed once: it may have megabytes.
    let ids = { (responses: [RawResponse]) in
      responses.compactMap { $0.json?.value(at: pointer)?.scalarText }
    }
    keysShareIDs = Self.hasEqual(ids(good), ids(others))
  }

  private struct Result: Hashable {
    let status: Int
    let body: [UInt8]

    init(_ response: RawResponse) { (status, body) = (response.status, response.body) }
  }

  /// Whether two of the good values are equal, or a good one and another.
  private static func hasEqual<Value: Hashable>(_ good: [Value], _ others: [Value]) -> Bool {
    let distinct = Set(good)
    return distinct.count < good.count || others.contains { distinct.contains($0) }
  }

  /// The evidence of a script, with what the whole run has shown about it.
  func weighed(_ evidence: Evidence) -> Evidence {
    var evidence = evidence
    evidence.keysShareResults = keysShareResults
    if keysShareIDs {
      evidence.executions = .unknown
      evidence.oracleFault = "two keys got the same id"
    }
    return evidence
  }
}
