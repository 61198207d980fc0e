import NIOCore
import Wire

/// The query by which Semel learns from the backend what became of a request whose response was lost.
public struct ReconcilePolicy: Hashable, Sendable {
  /// A field of the query, with credentials of Semel's own.
  public struct Field: Hashable, Sendable {
    public var name: String
    public var value: String

    public init(name: String, value: String) {
      self.name = name
      self.value = value
    }
  }

  /// The part of `path` that stands for the request id.
  public static let placeholder = "{request_id}"

  /// The path and query of a GET, with the placeholder.
  public var path: String
  public var headers: [Field] = []
  /// The statuses that state that the request was executed. The body is then its outcome.
  public var applied: [Int] = [200]
  /// The response that states that it was not; `nil` if none does.
  public var absent: Absence?
  /// The status under which the outcome is recorded; `nil` for that of the query's response.
  public var status: Int?

  public init(path: String) { self.path = path }

  /// The target of the query about a record.
  public func target(about id: RecordID) -> String { path.replacing(Self.placeholder, with: id.text) }

  /// The verdict of the query's response; `nil` for no complete response.
  ///
  /// - Parameters:
  ///   - method: The method of the request that the query is about.
  ///   - cors: The route's treatment of pages of other origins; `nil` for none.
  public func verdict(
    of response: ProbeResponse?, method: MessageHead.Method, cors: CORSPolicy? = nil
  ) -> ProbeVerdict {
    guard let response else { return .none }
    if let absent, absent.matches(response) { return .absent }
    return applied.contains(response.status) ? .applied(outcome(of: response, method, cors)) : .none
  }

  private func outcome(
    of response: ProbeResponse, _ method: MessageHead.Method, _ cors: CORSPolicy?
  ) -> Outcome {
    let status = status ?? response.status
    guard let body = response.body else { return .statusOnly(status: status, location: nil) }
    // Such responses have no content (RFC 9110, section 6.4.1).
    let hasContent = method != .head && status != 204 && status != 304
    var fields = ByteBuffer()
    if hasContent, let type = response.contentType {
      let line = ByteBuffer(string: "Content-Type: \(type)\r\n")
      // The probe's client lets control characters through, with which the record would be unreadable.
      if line.isFieldLines { fields.writeImmutableBuffer(line) }
    }
    // Semel composes this response: the listed origins may read it. A replay names the one that asks.
    if let cors, let origin = cors.origins.first {
      OriginAllowance(origin: origin, withCredentials: cors.credentials).write(into: &fields)
    }
    return .whole(RecordedResponse(status: status, fields: fields, body: hasContent ? body : ByteBuffer()))
  }
}

/// The statement of a backend on a request whose response was lost.
public enum ProbeVerdict: Sendable, Equatable {
  /// It was executed, with this outcome.
  case applied(Outcome)
  /// It was not executed.
  case absent
  /// The backend states neither, or did not respond: the outcome stays unknown.
  case none

  public var isApplied: Bool {
    if case .applied = self { true } else { false }
  }
}
