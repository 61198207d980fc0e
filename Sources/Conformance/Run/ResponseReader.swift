import NIOCore
import Wire

/// Decodes the responses of one connection, in the order of their requests. Pure: bytes in, outcomes out.
struct ResponseReader {
  /// The maximum size of a body that is kept, so that no endpoint can exhaust the memory.
  private static let maxBody = 16 << 20

  private var methods: ArraySlice<MessageHead.Method>
  private var decoder: ResponseDecoder
  private var input = ByteBuffer()
  private var current: RawResponse?

  /// Creates a reader for the responses to requests of these methods.
  init(methods: [String]) {
    let known = methods.map { ResponseReader.method($0) }
    self.methods = known[...]
    decoder = ResponseDecoder(
      limits: HeadLimits(headBytes: 256 << 10, maxFields: 500), method: known.first ?? .other)
  }

  /// The outcomes that these bytes complete. After a malformed response there are no more.
  mutating func receive(_ bytes: ByteBuffer) -> [Exchange.Outcome] {
    input.writeImmutableBuffer(bytes)
    var outcomes: [Exchange.Outcome] = []
    do throws(WireError) {
      while !methods.isEmpty, let event = try decoder.next(&input) {
        if let outcome = take(event) { outcomes.append(outcome) }
      }
    } catch {
      outcomes.append(.none("no HTTP response: \(error.sentence)"))
      methods = []
    }
    return outcomes
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
      guard !response.isInterim else { return nil }
      let head = response.head
      current = RawResponse(
        status: head.status,
        fields: head.fields.map {
          HeaderLine(name: head.string($0.nameRange), value: head.string($0.valueRange))
        })
    case .body(let bytes):
      if current.map({ $0.body.count < ResponseReader.maxBody }) == true {
        current?.body += bytes.readableBytesView
      }
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
