import Foundation
import SemelClient
import Testing

struct IntentKeyTests {
  @Test func `a key is a UUID of version 7 whose first part is its time`() {
    let key = IntentKey(at: Date(timeIntervalSince1970: 1_700_000_000.123)) { .max }
    #expect(key.rawValue == "018bcfe5-687b-7fff-bfff-ffffffffffff")
  }

  @Test func `keys that are made later sort later`() {
    var generator = SystemRandomNumberGenerator()
    let keys = (0..<1000).map { tick in
      IntentKey(at: Date(timeIntervalSince1970: Double(tick))) { generator.next() }.rawValue
    }
    #expect(keys == keys.sorted())
  }

  @Test func `keys of one moment differ`() {
    var generator = SystemRandomNumberGenerator()
    let keys = (0..<10_000).map { _ in IntentKey(at: Date(timeIntervalSince1970: 0)) { generator.next() } }
    #expect(Set(keys).count == keys.count)
  }

  @Test(arguments: [
    "", "two words", "quo\"te", "back\\slash", "Ümlaut", String(repeating: "k", count: 256), "new\nline",
  ])
  func `a text that servers would read differently is no key`(text: String) {
    #expect(IntentKey(text) == nil)
  }

  @Test func `a key that another system has made is taken as it is`() {
    #expect(IntentKey("order-17/A")?.rawValue == "order-17/A")
  }
}
