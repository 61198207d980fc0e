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

extension ReconcilePolicy {
  /// The response by which the backend states that a request was not executed: a status, and marks that only the
  /// handler of the query makes. A status alone may come from a gateway, or from a path that does not exist.
  public struct Absence: Hashable, Sendable {
    /// A member of a JSON body.
    public struct Member: Hashable, Sendable {
      public var pointer: String
      /// The text of a string, or a number or literal as it is written.
      public var value: String

      public init(pointer: String, value: String) {
        self.pointer = pointer
        self.value = value
      }
    }

    public var statuses = [404]
    /// The fields that the response must have with these values.
    public var headers: [Field] = []
    /// The members that its body must have with these values.
    public var members: [Member] = []

    public init() {}

    /// Whether there is a mark to know the handler by.
    public var hasMark: Bool { !headers.isEmpty || !members.isEmpty }

    /// Whether a response has the status and all marks, and is no cache's: that may be about an earlier attempt.
    func matches(_ response: ProbeResponse) -> Bool {
      hasMark && statuses.contains(response.status) && !response.isOfCache
        && headers.allSatisfy { response.has($0) } && has(members, in: response.body)
    }

    private func has(_ members: [Member], in body: ByteBuffer?) -> Bool {
      guard !members.isEmpty else { return true }
      return body?.withUnsafeReadableBytes { bytes in
        guard let document = try? JSONParser.parse(bytes), !document.hasDuplicates else { return false }
        return members.allSatisfy { member in
          JSONPointer(member.pointer).map { document.scalar(at: $0, equals: member.value) } ?? false
        }
      } ?? false
    }
  }
}

extension ProbeResponse {
  /// Whether the field has this value, and on none of its lines another.
  fileprivate func has(_ field: ReconcilePolicy.Field) -> Bool {
    guard let head else { return false }
    let values = values(of: field.name.lowercased(), in: head)
    return !values.isEmpty && values.allSatisfy { $0 == field.value }
  }

  /// Whether a cache says that it had the response already.
  fileprivate var isOfCache: Bool {
    guard let head else { return false }
    return values(of: "age", in: head).contains { $0 != "0" }
      || ["x-cache", "x-cache-status", "cf-cache-status"].contains { name in
        values(of: name, in: head).contains { $0.lowercased().hasPrefix("hit") }
      }
  }

  private func values(of name: String, in head: MessageHead) -> [String] {
    head.fields(named: name).map { head.string($0.valueRange) }
  }
}
