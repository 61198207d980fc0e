/// The state of an oracle at one moment.
public enum OracleReading: Equatable, Sendable {
  case count(Int)
  case ids(Set<String>)
  /// The oracle did not respond as it should, with the reason.
  case failed(String)
}

extension OracleSettings {
  /// The place that is read; `nil` for ids in responses.
  public var endpoint: Endpoint? {
    switch self {
    case .count(let endpoint, _), .list(let endpoint, _): endpoint
    case .responses: nil
    }
  }

  /// The reading in a response of the oracle.
  public func reading(of outcome: Exchange.Outcome) -> OracleReading {
    if case .endless(let reason) = outcome { return .failed(reason) }
    guard case .response(let response) = outcome else { return .failed("no response") }
    guard response.isSuccess else { return .failed("status \(response.status)") }
    guard let json = response.json else { return .failed(Self.text(ofNoJSON: response.body)) }
    switch self {
    case .count(_, let pointer):
      guard case .number(let text)? = json.value(at: pointer), let count = Int(text) else {
        return .failed("no whole number at \(pointer)")
      }
      return .count(count)
    case .list(_, let id):
      guard let elements = json.onlyList else { return .failed("no list") }
      let ids = elements.compactMap { $0.value(at: id)?.scalarText }
      return ids.count == elements.count ? .ids(Set(ids)) : .failed("an element without an id at \(id)")
    case .responses:
      return .failed("no oracle of its own")
    }
  }

  private static func text(ofNoJSON body: [UInt8]) -> String {
    guard !body.isEmpty else { return "no JSON: the body is empty" }
    let index = JSONReader.fault(in: body) ?? body.count
    guard index < body.count else { return "no JSON: it ends within a value, after \(body.count) bytes" }
    // Bytes that cannot be printed must not steer the reader's terminal.
    let shown = body[index...].prefix(maxShown).map { 0x20..<0x7F ~= $0 ? $0 : UInt8(ascii: "?") }
    return "no JSON: at byte \(index) it reads \(String(decoding: shown, as: UTF8.self))"
  }

  private static let maxShown = 24
}

extension OracleReading {
  var fault: String? {
    if case .failed(let reason) = self { reason } else { nil }
  }
}

extension OracleSettings? {
  /// The number of executions between two readings.
  public func executions(
    before: OracleReading?, after: OracleReading?, in evidence: Evidence
  ) -> Executions {
    switch (self, before, after) {
    case (.responses(let id), _, _):
      let seen = evidence.responses.filter(\.isSuccess).map { $0.json?.value(at: id)?.scalarText }
      return seen.contains(nil) ? .unknown : .atLeast(Set(seen).count)
    case (_, .count(let before), .count(let after)): return .exactly(after - before)
    case (_, .ids(let before), .ids(let after)): return .exactly(after.subtracting(before).count)
    default: return .unknown
    }
  }
}

extension JSONValue {
  /// The document itself if it is a list, or else the only list among its members.
  fileprivate var onlyList: [JSONValue]? {
    switch self {
    case .array(let elements):
      return elements
    case .object(let members):
      let lists = members.compactMap { member -> [JSONValue]? in
        if case .array(let elements) = member.value { elements } else { nil }
      }
      return lists.count == 1 ? lists[0] : nil
    default:
      return nil
    }
  }
}
