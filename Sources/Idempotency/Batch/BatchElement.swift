import NIOCore
import Wire

/// The part of a batch's response that belongs to one item.
public enum BatchElement: Sendable, Equatable {
  /// The item was executed by this delivery, with this result.
  case executed(ByteBuffer)
  /// The item was executed by another delivery, with this recorded outcome.
  case recorded(CompletedRecord)
  /// The backend's response to the items that were sent together has this class, and no result for each item.
  ///
  /// - Parameter retryAfter: The time after which a client may retry if the class is *unknown* (`retryAfterLoss`).
  case unsplit(status: Int, OutcomeClass, retryAfter: Milliseconds?)
  case refused(Problem)

  /// The numbers of elements of each kind.
  public struct Counts: Sendable, Equatable {
    public var executed = 0
    public var replayed = 0
    public var refused = 0

    public init(_ elements: [BatchElement]) {
      for element in elements {
        switch element.shown {
        case .executed: executed += 1
        case .recorded: replayed += 1
        case .refused, .unsplit: refused += 1
        }
      }
    }
  }

  /// A recorded outcome. An operator may have resolved the item by hand, with a body that is no JSON.
  public init(_ record: CompletedRecord) {
    guard case .whole(let response) = record.outcome, 200..<300 ~= response.status,
      response.body.withUnsafeReadableBytes({ (try? JSONParser.parse($0)) == nil })
    else {
      self = .recorded(record)
      return
    }
    self = .refused(.responseNotKept(status: response.status, location: nil))
  }

  /// The element as a client sees it: an outcome that is no single result is a refusal, which states its status.
  fileprivate var shown: BatchElement {
    switch self {
    case .executed, .refused: return self
    case .unsplit(let status, .final, _): return .refused(.responseNotKept(status: status, location: nil))
    case .unsplit(_, .retry, _): return .refused(.batchNotExecuted)
    case .unsplit(_, .unknown, let retryAfter): return .refused(.outcomeUnknown(retryAfter: retryAfter))
    case .recorded(let record):
      guard case .whole(let response) = record.outcome, 200..<300 ~= response.status else {
        return .refused(.responseNotKept(status: record.outcome.status, location: nil))
      }
      return self
    }
  }

  /// The JSON of an element as a client sees it.
  fileprivate var json: ByteBuffer {
    switch self {
    case .executed(let result): return result
    case .refused(let problem): return problem.body()
    case .recorded(let record):
      if case .whole(let response) = record.outcome { return response.body }
    case .unsplit: break
    }
    invariantBroken("an element is written that has no result")
  }
}

/// The response to a batch.
public struct BatchResponse: Sendable, Equatable {
  public enum Content: Sendable, Equatable {
    /// All items are refused for one reason, which is the response.
    case refused(Problem)
    /// All items have one recorded outcome, of a response that was not split: it is the response.
    case replayed(CompletedRecord)
    /// A response of Semel's own with an element for each item.
    case assembled(status: Int, body: ByteBuffer)
  }

  public let content: Content
  public let counts: BatchElement.Counts

  /// - Parameters:
  ///   - elements: One for each item, in the request's order.
  ///   - results: The backend's response to the items that were sent, if that was split.
  ///   - status: The status of that response; else it is that of the first item's record.
  ///   - limit: The maximum size of all results together, in bytes. A result beyond it is replaced by a refusal.
  public init(
    _ elements: [BatchElement], around results: BatchResults?, status: Int?, policy: BatchPolicy, limit: Int
  ) {
    if case .recorded(let record)? = elements.first, case .whole(let response) = record.outcome,
      !(200..<300 ~= response.status), elements.allSatisfy({ $0.outcome == record.outcome })
    {
      (content, counts) = (.replayed(record), BatchElement.Counts(elements.map(\.shown)))
      return
    }
    let common = status ?? elements.first?.outcome?.status ?? 200
    let shown = Self.fitting(elements.map(\.shown), status: common, limit: limit)
    counts = BatchElement.Counts(shown)
    if case .refused(let problem)? = shown.first, shown.allSatisfy({ $0 == .refused(problem) }) {
      content = .refused(problem)
      return
    }
    let json = shown.map(\.json)
    let body = results?.body(with: json) ?? JSONArrayText(around: policy.results).text(with: json)
    content = .assembled(status: counts.refused == 0 ? common : 207, body: body)
  }

  /// Refuses the elements that do not fit into the limit. This delivery's own results are fitted in first.
  private static func fitting(_ elements: [BatchElement], status: Int, limit: Int) -> [BatchElement] {
    var (elements, left) = (elements, limit)
    func fit(_ index: Int, _ status: Int) {
      let size = elements[index].json.readableBytes
      if size <= left { left -= size } else { elements[index] = .refused(.resultTooLarge(status: status)) }
    }
    for index in elements.indices {
      if case .executed = elements[index] { fit(index, status) }
    }
    for index in elements.indices {
      if case .recorded(let record) = elements[index] { fit(index, record.outcome.status) }
    }
    return elements
  }
}

extension BatchElement {
  /// The recorded outcome, if it is one.
  fileprivate var outcome: Outcome? {
    guard case .recorded(let record) = self else { return nil }
    return record.outcome
  }
}
