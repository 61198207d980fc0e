import Foundation
import Idempotency
import Logging
import TestSupport
import Testing

@testable import Store

/// The point that a file has reached, compared with what is noted beside it.
struct FileProgressTests {
  private static let noted = FileProgress(generation: 2, start: 7, latest: 1000)

  @Test(arguments: [
    (FileProgress(generation: 2, start: 7, latest: 1000), false),
    (FileProgress(generation: 2, start: 7, latest: 1001), false),
    (FileProgress(generation: 2, start: 7, latest: 999), true),
    // A later start may begin at any time, an earlier one has none that counts.
    (FileProgress(generation: 2, start: 8, latest: 1), false),
    (FileProgress(generation: 2, start: 6, latest: 2000), true),
    (FileProgress(generation: 1, start: 8, latest: 2000), true),
    (FileProgress(generation: 3, start: 8, latest: 2000), true),
    (FileProgress(), true),
  ])
  func `a file is compared by its generation, by its start, and within a start by its time`(
    found: FileProgress, hasLoss: Bool
  ) {
    #expect(found.hasLoss(since: Self.noted) == hasLoss)
  }

  @Test(
    arguments: [
      (FileProgress(generation: 2, start: 9, latest: 5), nil, 2, 10),
      (FileProgress(generation: 2, start: 6, latest: 5), .behind, 3, 8),
      (FileProgress(generation: 1, start: 9, latest: 5), .behind, 3, 10),
      // The start that found the loss was killed.
      (FileProgress(generation: 3, start: 8, latest: 5), .behind, 3, 9),
      (FileProgress(generation: 3, start: 8, latest: 5), .copy(madeAt: 1), 4, 9),
      (FileProgress(generation: 1, start: 3, latest: 5), .copy(madeAt: 1), 3, 8),
      (FileProgress(), .gone, 3, 8),
      (FileProgress(generation: FileProgress.maxGeneration), .copy(madeAt: 1), FileProgress.maxGeneration, 8),
    ] as [(FileProgress, FileLoss?, Int, Int64)])
  func `a start goes beyond the file and the note, and a loss begins a generation`(
    found: FileProgress, loss: FileLoss?, generation: Int, start: Int64
  ) {
    let next = found.next(after: Self.noted, loss: loss, at: StoreInstant(milliseconds: 50))
    #expect(next == FileProgress(generation: generation, start: start, latest: 50))
  }

  @Test func `a start without a note goes on from the file`() {
    let found = FileProgress(generation: 4, start: 2, latest: 9)
    let now = StoreInstant(milliseconds: 50)
    #expect(
      found.next(after: nil, loss: nil, at: now) == FileProgress(generation: 4, start: 3, latest: 50))
    #expect(found.next(after: nil, loss: .copy(madeAt: 1), at: now).generation == 5)
    #expect(FileProgress().next(after: nil, loss: .gone, at: now).generation == 1)
  }

  @Test func `a note is read as it was written, and as earlier versions wrote it`() {
    for note in [LockNote.new, .unknown, .reached(Self.noted), .reached(FileProgress())] {
      #expect(LockNote(note.text(owner: 4_194_304)) == note)
    }
    let longest = FileProgress(generation: FileProgress.maxGeneration, start: .max, latest: .max)
    #expect(LockNote.reached(longest).text(owner: 4_194_304).utf8.count < LockNote.maxLength)
    #expect(LockNote("4711\ngeneration 3\n") == .reached(FileProgress(generation: 3)))
    #expect(
      LockNote("4711\ngeneration 3\nlatest 17\n") == .reached(FileProgress(generation: 3, latest: 17)))
    // A kill between the writing of a note and the cutting of the rest leaves parts of a longer one.
    #expect(LockNote(LockNote.reached(Self.noted).text(owner: 1) + "start 99\n") == .reached(Self.noted))
  }

  /// Three starts, of which each may find a loss, has a clock that is ahead or behind, and may be killed at each step.
  @Test func `after any kills a whole start finds the loss that was not noted, and no other`() {
    let scenarios = Scenario.steps(of: 3)
    #expect(scenarios.count == 5832)
    for steps in scenarios {
      var scenario = Scenario()
      for step in steps { scenario.run(step) }
      let hasLoss = scenario.hasUnnotedLoss
      let found = scenario.run(.init(event: .none, end: .whole, clock: 0))
      let foundAgain = scenario.run(.init(event: .none, end: .whole, clock: -100))
      #expect(found == hasLoss && !foundAgain, "\(steps)")
      #expect(scenario.file.generation == scenario.lossCount, "\(steps)")
    }
  }
}

/// A file and its note, over starts that are killed.
private struct Scenario {
  enum Event: CaseIterable { case none, lost, older }
  /// The last step of a start before it was killed.
  enum End: CaseIterable { case before, committed, whole }

  struct Step {
    let event: Event
    let end: End
    let clock: Int64
  }

  var file = FileProgress(generation: 0, start: 5, latest: 1000)
  var note = FileProgress(generation: 0, start: 5, latest: 1000)
  var hasUnnotedLoss = false
  /// The number of losses. One that follows another before that was noted counts with it.
  var lossCount = 0
  private var time: Int64 = 1000

  static func steps(of length: Int) -> [[Step]] {
    guard length > 0 else { return [[]] }
    let steps = Event.allCases.flatMap { event in
      End.allCases.flatMap { end in [-100, 100].map { Step(event: event, end: end, clock: $0) } }
    }
    return Self.steps(of: length - 1).flatMap { rest in steps.map { rest + [$0] } }
  }

  /// Runs a start up to its last step. Returns whether it finds a loss.
  @discardableResult
  mutating func run(_ step: Step) -> Bool {
    switch step.event {
    case .none: break
    case .lost: file = FileProgress()
    case .older:
      file = note
      file.latest -= 1
    }
    if step.event != .none, !hasUnnotedLoss {
      hasUnnotedLoss = true
      lossCount += 1
    }
    let hasLoss = file.hasLoss(since: note)
    guard step.end != .before else { return hasLoss }
    time += step.clock
    file = file.next(after: note, loss: hasLoss ? .behind : nil, at: StoreInstant(milliseconds: time))
    guard step.end == .whole else { return hasLoss }
    note = file
    hasUnnotedLoss = false
    return hasLoss
  }
}
