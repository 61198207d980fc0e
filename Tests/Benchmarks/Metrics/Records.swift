import Telemetry

/// Requests that have ended, with durations such as a busy node has them: some of them, so that no branch is always right.
enum Records {
  static let replays = (0..<64).map { number in
    var record = AccessLogEntry()
    record.outcome = .replayed
    record.source = .store
    record.requestBytes = 48
    record.responseBytes = 312
    record.claimMicroseconds = 90 + Int64(number * 7 % 64) * 5
    record.totalMicroseconds = record.claimMicroseconds + 35
    return record
  }

  static let firstRuns = (0..<64).map { number in
    var record = AccessLogEntry()
    record.outcome = .executed
    record.attempt = 1
    record.requestBytes = 48
    record.responseBytes = 312
    record.claimMicroseconds = 120 + Int64(number * 7 % 64) * 5
    record.upstreamMicroseconds = 700 + Int64(number * 11 % 64) * 90
    record.recordMicroseconds = 130 + Int64(number * 13 % 64) * 5
    record.totalMicroseconds =
      record.claimMicroseconds + record.upstreamMicroseconds + record.recordMicroseconds + 60
    record.timeToSuccessMilliseconds = record.totalMicroseconds / 1000
    return record
  }
}
