import Wire

/// A number of connections for protected requests, and one for all others.
struct ByProtection {
  private var numbers = (protected: 0, other: 0)

  subscript(isProtected: Bool) -> Int {
    get { isProtected ? numbers.protected : numbers.other }
    set {
      invariant(newValue >= 0, "a connection is counted out twice among those of its kind")
      if isProtected { numbers.protected = newValue } else { numbers.other = newValue }
    }
  }
}
