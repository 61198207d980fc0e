/// Why a caller is not known.
public enum CallerFault: Hashable, Sendable, CaseIterable {
  /// A part is not there, or is empty.
  case missing
  /// A part is there twice, and nobody can tell which one the backend believes.
  case repeated
  /// `Authorization` has a scheme that signs each request anew: a retry would be another caller.
  case signedEachTime
}
