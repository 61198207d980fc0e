/// The embedded store's numbers for the metrics page.
public struct EmbeddedFigures: Equatable, Sendable {
  /// The number of groups that were committed.
  public internal(set) var commits = 0
  /// The number of entries and responses that the sweeper has removed.
  public internal(set) var swept = 0
  /// The number of sweep steps that failed.
  public internal(set) var sweepFailures = 0
  /// The length of the database file, in bytes.
  public internal(set) var databaseBytes = 0
  /// The length of SQLite's log, in bytes.
  public internal(set) var logBytes = 0
  /// The free space within the database, in bytes.
  public internal(set) var freeBytes = 0
  /// The number of starts of this process that have found a loss (`FileLoss`).
  public internal(set) var losses = 0
  /// Whether the database is still where it was opened.
  public internal(set) var isAvailable = true
  /// Whether all open records are known, so that nobody has to walk for them.
  public internal(set) var hasOpenIndex = false
}
