/// A text that is never shown: neither by interpolation nor by `dump`, a debugger's summary or any other reflection.
///
/// Code that needs the text must use `revealed`, which can be searched for.
public struct Secret: Sendable, Hashable {
  /// The text itself, for the one place that sends it or computes with it.
  public let revealed: String

  public init(_ text: String) { revealed = text }
}

extension Secret: ExpressibleByStringLiteral {
  public init(stringLiteral text: String) { self.init(text) }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { "(redacted)" }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}
