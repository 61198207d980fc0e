import Idempotency
import Platform

/// The signs that a connection and its server give.
extension RedisLink {
  /// The number of bytes that have passed, in both directions. While it grows, the connection is not stuck.
  var passedBytes: Int {
    guard let handler else { return readBytes }
    return readBytes + writtenBytes - handler.unsentBytes
  }

  /// Whether the server answers nobody: a connection that was begun after its last sign to anyone in this process has
  /// failed, or has got no sign for the time of a call. `nil` if that is not known yet.
  func isServerSilent(at now: BootInstant) -> Bool? {
    if isUp { return false }
    guard let presence else { return outage == nil ? nil : true }
    if let failedAttemptAt, !presence.hasSpoken(since: failedAttemptAt) { return true }
    guard isConnecting, let attemptedAt, now - attemptedAt >= settings.timeout else { return nil }
    return presence.hasSpoken(since: attemptedAt) ? nil : true
  }
}
