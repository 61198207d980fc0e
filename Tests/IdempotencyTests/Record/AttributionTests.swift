import Idempotency
import Testing

/// The origin of a record, as text and as a condition.
struct AttributionTests {
  private static let whole = Attribution(
    route: "orders", keyDigest: "6ab9f1eb", callerDigest: "9b943d6d", node: "orders-1", cause: .timeOut)

  @Test(arguments: [
    (whole, "orders,6ab9f1eb,9b943d6d,orders-1,time_out"),
    (Attribution(route: "a", node: "n"), "a,,,n"),
    (Attribution(route: "a", keyDigest: "00000000", node: ""), "a,00000000,,"),
  ])
  func `a text is read back`(_ attribution: Attribution, _ text: String) {
    #expect(attribution.text == text)
    #expect(Attribution(text: text) == attribution)
  }

  @Test(arguments: ["", "orders", "orders,1,2", ",1,2,n"])
  func `what is no origin is not known`(_ text: String) {
    #expect(Attribution(text: text) == nil)
  }

  @Test func `parts of later versions are passed over`() {
    let known = Self.whole
    #expect(Attribution(text: known.text + ",more") == known)
    let other = Attribution(
      route: known.route, keyDigest: known.keyDigest, callerDigest: known.callerDigest, node: known.node)
    #expect(Attribution(text: other.text + ",other_cause") == other)
  }

  @Test func `a node's name has no separator, and of a long one the end is kept`() {
    #expect(Attribution.nodeName("orders-1.example_A") == "orders-1.example_A")
    #expect(Attribution.nodeName("a b,c@dé") == "a_b_c_d__")
    let name = Attribution.nodeName("payments-orders-api-7d9f8b6c5d-x2x4q")
    #expect(name == "ers-api-7d9f8b6c5d-x2x4q")
  }

  @Test func `all parts of a filter must hold`() {
    let origin = Self.whole
    #expect(RecordFilter(keyDigests: ["other", "6ab9f1eb"]).matches(origin))
    #expect(RecordFilter(callerDigest: "9b943d6d", route: "orders").matches(origin))
    #expect(!RecordFilter(keyDigests: ["other"]).matches(origin))
    #expect(!RecordFilter(keyDigests: ["6ab9f1eb"], callerDigest: "other").matches(origin))
    #expect(!RecordFilter(keyDigests: ["6ab9f1eb"], route: "other").matches(origin))
    #expect(!RecordFilter(keyDigests: ["6ab9f1eb"]).matches(Attribution(route: "orders", node: "n")))
    #expect(!RecordFilter().matches(nil))
  }
}
