/// The recent history of a few counts: a sample every five seconds for five minutes, and one a minute for an hour.
/// Two to three kilobytes. Pure: the totals come in, one every five seconds.
public struct CountRing: Sendable {
  /// The number of samples of each span.
  public static let length = 60
  private static let fold = 12

  private let width: Int
  private var last: [Int]?
  private var fine: [UInt32]
  private var coarse: [UInt32]
  private var fineEnd = 0
  private var coarseEnd = 0

  /// Creates the history of so many counts, all of whose samples are 0.
  public init(width: Int) {
    self.width = width
    fine = Array(repeating: 0, count: Self.length * width)
    coarse = fine
  }

  /// Takes the totals of all counts. The first ones are the beginning, and no sample.
  public mutating func add(_ totals: [Int]) {
    precondition(totals.count == width, "CountRing: \(totals.count) totals for \(width) counts")
    defer { last = totals }
    guard let last else { return }
    let (fineSlot, coarseSlot) = (fineEnd % Self.length, coarseEnd / Self.fold % Self.length)
    for index in 0..<width {
      let difference = UInt32(clamping: totals[index] - last[index])
      fine[fineSlot * width + index] = difference
      let place = coarseSlot * width + index
      let before = coarseEnd % Self.fold == 0 ? 0 : coarse[place]
      coarse[place] = before.addingReportingOverflow(difference).overflow ? .max : before + difference
    }
    fineEnd += 1
    coarseEnd += 1
  }

  /// The samples of the last five minutes, the oldest first; each has a number for each count.
  public var minutes: [[Int]] { Self.samples(fine, width, from: fineEnd) }

  /// The samples of the last hour, the oldest first. The last one is that of the present minute.
  public var hour: [[Int]] {
    Self.samples(coarse, width, from: (coarseEnd + Self.fold - 1) / Self.fold)
  }

  private static func samples(_ ring: [UInt32], _ width: Int, from start: Int) -> [[Int]] {
    (0..<length).map { offset in
      let slot = (start + offset) % length
      return ring[slot * width..<(slot + 1) * width].map { Int($0) }
    }
  }
}
