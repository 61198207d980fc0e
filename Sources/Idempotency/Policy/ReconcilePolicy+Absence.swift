import NIOCore
import Wire

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
