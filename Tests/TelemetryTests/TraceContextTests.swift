import Telemetry
import Testing

/// A trace context.
struct TraceContextTests {
  private static func read(_ text: String) -> TraceContext? {
    Array(text.utf8).withUnsafeBytes { TraceContext($0) }
  }

  @Test(arguments: [
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
  ])
  func `is written as it was read`(text: String) {
    #expect(Self.read(text)?.text == text)
    #expect(Self.read(text)?.traceText == "0af7651916cd43dd8448eb211c80319c")
  }

  @Test func `may hold more in a later version`() {
    let text = "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-else"
    #expect(Self.read(text)?.span == 0xb7ad_6b71_6920_3331)
  }

  @Test(arguments: [
    "", "00", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
    "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "00-00000000000000000000000000000000-b7ad6b7169203331-01",
    "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
    "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01.more",
    "00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01",
  ])
  func `is refused if malformed`(text: String) {
    #expect(Self.read(text) == nil)
  }

  @Test func `stays in its trace for another span`() {
    let context = TraceContext(traceHigh: 1, traceLow: 2, span: 3, isSampled: true)
    #expect(context.speaking(as: 4).text == "00-00000000000000010000000000000002-0000000000000004-01")
  }
}
