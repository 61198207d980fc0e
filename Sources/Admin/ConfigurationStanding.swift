/// Which configuration a process works by, and what became of the last attempt to change it.
package struct ConfigurationStanding: Sendable, Equatable {
  /// A configuration that was read and refused.
  package struct Refusal: Sendable, Equatable {
    /// As log lines tell the time.
    package var at: String
    /// A line each, with file, line and column where the file is at fault.
    package var reasons: [String]

    package init(at: String, reasons: [String]) {
      self.at = at
      self.reasons = reasons
    }
  }

  package var digest: String
  package var loadedAt: String
  /// Of the last reload, where it was refused.
  package var refusal: Refusal?

  package init(digest: String, loadedAt: String) {
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
