/// The two readers of the grammar of HTTP/1.1 (RFC 9112).
public enum Reading: Sendable {
  /// Everything is refused that the grammar does not allow, or that readers may understand in two ways. Every request is
  /// read so, and every response of which nothing may be guessed.
  case strict
  /// As `strict`, but for faults that leave a response one meaning: they are put right, so that only the right form is
  /// forwarded and recorded. To refuse what every other proxy reads would make *executed* into *unknown*.
  case tolerant
}
