/// The configuration that a process uses, and the failure of the latest attempt to change it.
public struct ConfigurationStatus: Sendable, Equatable {
  /// A configuration that was read and refused.
  public struct Refusal: Sendable, Equatable {
    /// The time of the refusal, in the format of log entries.
    public var at: String
    /// The first digits of the refused file's digest; `nil` if it could not be read as a configuration.
    public var digest: String?
    /// The reasons, one line each, with file, line and column if the file is at fault.
    public var reasons: [String]

    public init(at: String, digest: String? = nil, reasons: [String]) {
      self.at = at
      self.digest = digest
      self.reasons = reasons
    }
  }

  /// The first digits of the configuration file's digest.
  public var digest: String
  /// The time when the configuration was loaded, in the format of log entries.
  public var loadedAt: String
  /// The refusal of the latest reload; `nil` if it succeeded.
  public var refusal: Refusal?

  public init(digest: String, loadedAt: String) {
    self.digest = digest
    self.loadedAt = loadedAt
  }

  /// The text for a person, one fact per line.
  var text: String {
    var text = "configuration \(digest), loaded \(loadedAt)\n"
    if let refusal {
      text += "reload refused \(refusal.at)\(refusal.digest.map { " of \($0)" } ?? ""):\n"
      for reason in refusal.reasons { text += "  \(reason)\n" }
    }
    return text
  }
}
