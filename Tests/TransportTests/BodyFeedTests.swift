import NIOCore
import Testing

@testable import Transport

@Suite struct `The feed of a streamed body` {
  private func supply(_ feed: inout BodyFeed, room: Int = 100) -> (BodyFeed.SupplyAction, String) {
    var bytes = [UInt8](repeating: 0, count: room)
    let action = bytes.withUnsafeMutableBytes { feed.supply(into: $0) }
    guard case .supplied(let count, _) = action else { return (action, "") }
    return (action, String(decoding: bytes[..<count], as: UTF8.self))
  }

  private func expectSupply(
    _ feed: inout BodyFeed, room: Int = 100, _ action: BodyFeed.SupplyAction, _ bytes: String = ""
  ) {
    let got = supply(&feed, room: room)
    #expect(got == (action, bytes))
  }

  private func expectOffer(_ feed: inout BodyFeed, _ piece: ByteBuffer?, _ action: BodyFeed.OfferAction) {
    let got = feed.offer(piece)
    #expect(got == action)
  }

  @Test func `a piece is handed over in parts, and the next is read when it is used up`() {
    var feed = BodyFeed(length: nil)
    expectSupply(&feed, .wait(readOn: true))
    expectSupply(&feed, .wait(readOn: false))
    #expect(feed.isStarving)
    expectOffer(&feed, ByteBuffer(string: "abc"), .offered(resume: true))
    expectSupply(&feed, room: 2, .supplied(2, readOn: false), "ab")
    expectSupply(&feed, room: 2, .supplied(1, readOn: true), "c")
    #expect(!feed.isStarving && !feed.isSupplied)
    expectOffer(&feed, nil, .offered(resume: false))
    expectSupply(&feed, .end)
    #expect(feed.isSupplied)
  }

  @Test func `an empty piece is not the end`() {
    var feed = BodyFeed(length: nil)
    _ = supply(&feed)
    expectOffer(&feed, ByteBuffer(), .readOn)
    expectOffer(&feed, ByteBuffer(string: "a"), .offered(resume: true))
  }

  @Test func `with a known length nothing is read past it`() {
    var feed = BodyFeed(length: 2)
    _ = supply(&feed)
    expectOffer(&feed, ByteBuffer(string: "ab"), .offered(resume: true))
    expectSupply(&feed, .supplied(2, readOn: false), "ab")
    #expect(feed.isSupplied)
  }

  @Test(arguments: [["abc"], ["a", nil]])
  func `another length than the known one is refused`(pieces: [String?]) {
    var feed = BodyFeed(length: 2)
    for (index, piece) in pieces.enumerated() {
      _ = supply(&feed)
      let action = feed.offer(piece.map { ByteBuffer(string: $0) })
      guard index == pieces.count - 1 else { continue }
      guard case .refuse = action else {
        Issue.record("\(action)")
        return
      }
    }
  }
}
