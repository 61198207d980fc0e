/// One request of a script, in terms of what it has in common with the others: key, payload and caller.
public struct Delivery: Hashable, Sendable {
  /// The key's field lines.
  public enum Key: Hashable, Sendable {
    case none
    /// A fresh key under this name, quoted or bare as the endpoint takes it.
    case fresh(String)
    /// A text, quoted or bare as the endpoint takes it, in which `{a}` stands for the fresh key of the name `a`, and
    /// `{a:sibling}` for one that differs from it in the last digit only.
    case text(String)
    /// Field values of a line each, in which `{a}` stands for the fresh key of the name `a`.
    case values([String])
  }

  /// The body, and with it the media type.
  public enum Payload: Hashable, Sendable {
    case first
    /// A payload that asks for something else.
    case other
    /// A payload that takes long to execute.
    case slow
    /// A payload that asks for something else than the slow one, and need not take long.
    case otherThanSlow
    /// A payload that the application refuses to run.
    case failing
    /// JSON that breaks off.
    case malformed
    case empty
    case rewritten(Rewriting)
  }

  /// Other spellings of the first payload that mean the same.
  public enum Rewriting: Hashable, Sendable, CaseIterable {
    case spaced, reordered, renumbered
    /// Multipart with another boundary.
    case rebounded
    /// The same bytes under the content coding gzip.
    case compressed
  }

  public enum Caller: Hashable, Sendable { case first, other, none }

  public enum Framing: Hashable, Sendable { case length, chunked, expectation }

  public enum Target: Hashable, Sendable { case same, trailingSlash, query(String) }

  public var key: Key
  public var payload: Payload
  public var caller = Caller.first
  public var framing = Framing.length
  public var target = Target.same
  /// The method, if it is another one than the endpoint's.
  public var method: String?
  /// Parameters behind the media type.
  public var mediaTypeParameters = ""
  /// Further field lines.
  public var fields: [String] = []

  public init(_ key: Key = .fresh("a"), _ payload: Payload = .first) {
    self.key = key
    self.payload = payload
  }

  /// The names of the further field lines.
  public var fieldNames: [String] { fields.map { String($0.prefix { $0 != ":" }) } }

  /// A copy with one member changed.
  public func with<Value>(_ member: WritableKeyPath<Delivery, Value>, _ value: Value) -> Delivery {
    var copy = self
    copy[keyPath: member] = value
    return copy
  }
}
