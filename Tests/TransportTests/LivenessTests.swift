import TestSupport
import Testing

@testable import Transport

/// The liveness of a shared connection.
struct LivenessTests {
  /// Lets so many seconds pass in which this much has been read, and gives what was to be done in each.
  private func tick(
    _ liveness: inout Liveness, _ seconds: Int, reads: Int = 0, responses: Int = 0, hasStreams: Bool = true
  ) -> [Liveness.TickAction] {
    (0..<seconds).map { _ in liveness.ticked(reads: reads, responses: responses, hasStreams: hasStreams) }
  }

  @Test func `a PING is due after two seconds of silence, and the connection is given up ten seconds later`()
  {
    var liveness = Liveness()
    #expect(tick(&liveness, 2) == [.none, .ping])
    #expect(liveness.isPinging)
    #expect(tick(&liveness, 10) == Array(repeating: .none, count: 9) + [.giveUp])
  }

  @Test func `any read keeps the connection, and admits streams again`() {
    var liveness = Liveness()
    _ = tick(&liveness, 2)
    liveness.heard()
    #expect(!liveness.isPinging)
    #expect(tick(&liveness, 1, reads: 1) == [.none])
  }

  @Test func `without streams no PING is due, but a pending one still counts`() {
    var liveness = Liveness()
    #expect(tick(&liveness, 3, hasStreams: false) == [.rest, .rest, .rest])
    _ = tick(&liveness, 2)
    #expect(tick(&liveness, 10, hasStreams: false).last == .giveUp)
  }

  @Test func `the ticks begin with the first stream after a rest`() {
    var liveness = Liveness()
    let begins = [liveness.streamOpened(), liveness.streamOpened()]
    #expect(begins == [true, false])
    _ = tick(&liveness, 2)
    // A pending PING keeps the ticks without streams.
    #expect(tick(&liveness, 1, hasStreams: false) == [.none])
    let beginsWhilePinging = liveness.streamOpened()
    #expect(!beginsWhilePinging)
    #expect(tick(&liveness, 1, reads: 1, hasStreams: false) == [.rest])
    let beginsAgain = liveness.streamOpened()
    #expect(beginsAgain)
  }

  /// As a backend of gRPC counts, which ends the connection at the third PING within five minutes without DATA or
  /// HEADERS between them.
  @Test func `PINGs become rare in a long silence`() {
    var liveness = Liveness()
    var reads = 0
    var pings: [Int] = []
    for second in 1...1200 where liveness.ticked(reads: reads, responses: 0, hasStreams: true) == .ping {
      pings.append(second)
      reads += 1
    }
    let strikes = zip(pings, pings.dropFirst()).count { $1 - $0 < 300 }
    #expect(strikes == 2, "\(pings)")
    #expect(pings.count >= 4)
  }

  @Test func `responses shorten the pause before the next PING`() {
    var liveness = Liveness()
    var reads = 0
    for responses in 1...10 {
      #expect(tick(&liveness, 2, reads: reads, responses: responses - 1).last == .ping)
      reads += 1
      #expect(tick(&liveness, 1, reads: reads, responses: responses) == [.none])
    }
  }
}

/// The records of TLS.
struct TLSRecordTests {
  private static let record: [UInt8] = [23, 3, 3, 0, 3, 1, 2, 3]

  @Test func `records of TLS end at their stated length, however they are cut`() {
    for cut in 0...Self.record.count * 2 {
      let records = TLSRecords()
      let bytes = Self.record + Self.record
      bytes[..<cut].withUnsafeBytes { records.take($0) }
      #expect(records.isMidRecord == !cut.isMultiple(of: Self.record.count), "\(cut)")
      bytes[cut...].withUnsafeBytes { records.take($0) }
      #expect(!records.isMidRecord)
    }
  }

  @Test func `any records of TLS, cut anywhere, end where they say`() {
    var dice = SeededGenerator(seed: 1)
    for _ in 0..<2000 {
      var bytes: [UInt8] = []
      var ends: Set<Int> = [0]
      for _ in 0..<Int.random(in: 1...8, using: &dice) {
        let length = Bool.random(using: &dice) ? 0 : Int.random(in: 0...700, using: &dice)
        bytes += [UInt8.random(in: 20...24, using: &dice), 3, 3, UInt8(length >> 8), UInt8(length & 0xFF)]
        bytes += (0..<length).map { _ in UInt8.random(in: 0...255, using: &dice) }
        ends.insert(bytes.count)
      }
      let records = TLSRecords()
      var at = 0
      while at < bytes.count {
        let end = min(bytes.count, at + Int.random(in: 1...900, using: &dice))
        bytes[at..<end].withUnsafeBytes { records.take($0) }
        at = end
        guard records.isMidRecord == !ends.contains(at) else {
          Issue.record("cut at \(at) of \(bytes)")
          return
        }
      }
    }
  }

  @Test func `long records of TLS count by both bytes of their length`() {
    let records = TLSRecords()
    ([23, 3, 3, 0x40, 0x01] as [UInt8]).withUnsafeBytes { records.take($0) }
    [UInt8](repeating: 0, count: 0x4000).withUnsafeBytes { records.take($0) }
    #expect(records.isMidRecord)
    ([0] as [UInt8]).withUnsafeBytes { records.take($0) }
    #expect(!records.isMidRecord)
  }
}
