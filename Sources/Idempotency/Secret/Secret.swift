/// A text that is never shown: neither by interpolation nor by `dump`, a debugger's summary or any other reflection.
///
/// Whoever needs the text says so by `revealed`, which a reader of the code can search for.
public struct Secret: Sendable, Hashable {
  /// The text itself: for the one place that sends it or computes with it.
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
