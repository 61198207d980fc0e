/// Which configuration a process works by, and what became of the last attempt to change it.
public struct ConfigurationStanding: Sendable, Equatable {
  /// A configuration that was read and refused.
  public struct Refusal: Sendable, Equatable {
    /// As log lines tell the time.
    public var at: String
    /// A line each, with file, line and column where the file is at fault.
    public var reasons: [String]

    public init(at: String, reasons: [String]) {
      self.at = at
      self.reasons = reasons
    }
  }

  public var digest: String
  public var loadedAt: String
  /// Of the last reload, where it was refused.
  public var refusal: Refusal?

  public init(digest: String, loadedAt: String) {
    self.digest = digest
    self.loadedAt = loadedAt
  }

  /// For people, a line each.
  var text: String {
    var text = "configuration \(digest), loaded \(loadedAt)\n"
    if let refusal {
      text += "reload refused \(refusal.at):\n"
      for reason in refusal.reasons { text += "  \(reason)\n" }
    }
    return text
  }
}
