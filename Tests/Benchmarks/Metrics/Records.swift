import Telemetry

/// Requests that have ended, with durations such as a busy node has them: some of them, so that no branch is always
/// right.
enum Records {
  static let replays = (0..<64).map { number in
    var record = AccessLogEntry()
    record.outcome = .replayed
    record.source = .store
    record.requestBytes = 48
    record.responseBytes = 312
    let claim = 90 + Int64(number * 7 % 64) * 5
    record.claimMicroseconds = claim
    record.totalMicroseconds = claim + 35
    return EndedRequest(record)
  }

  static let firstRuns = (0..<64).map { number in
    var record = AccessLogEntry()
    record.outcome = .executed
    record.attempt = 1
    record.requestBytes = 48
    record.responseBytes = 312
    let claim = 120 + Int64(number * 7 % 64) * 5
    let upstream = 700 + Int64(number * 11 % 64) * 90
    let stored = 130 + Int64(number * 13 % 64) * 5
    let total = claim + upstream + stored + 60
    record.claimMicroseconds = claim
    record.upstreamMicroseconds = upstream
    record.recordMicroseconds = stored
    record.totalMicroseconds = total
    record.timeToSuccessMilliseconds = total / 1000
    return EndedRequest(record)
  }
}

/// A request that has ended. An entry itself cannot be the element of an array.
final class EndedRequest: Sendable {
  let entry: AccessLogEntry

  init(_ entry: consuming AccessLogEntry) { self.entry = entry }
}
