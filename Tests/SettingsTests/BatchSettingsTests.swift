import Idempotency
import Settings
import Testing

struct BatchSettingsTests {
  private static let batch = "batch: {items: /orders, key: /request_id, results: /results}"

  @Test func `a batch takes its keys from the items`() throws {
    let settings = try load(route(Self.batch + ", key: {max_length: 40}"))
    let policy = settings.routes[0]
    #expect(policy.batch == BatchPolicy(items: "/orders", key: "/request_id", results: "/results"))
    #expect(policy.batch?.maxItems == 100)
    #expect(policy.key.from == [.json("/orders/0/request_id")])
    #expect(policy.key.maxLength == 40)
    let bare = try load(route("batch: {items: '', key: /id, results: '', max_items: 5}"))
    #expect(bare.routes[0].key.from == [.json("/0/id")])
    #expect(bare.routes[0].batch?.maxItems == 5)
  }

  @Test(arguments: [
    ("stream: true", "stream"), ("retries: {max: 1}", "retries"), ("shadow: true", "shadow"),
    ("on_store_failure: open", "on_store_failure"), ("idempotency: optional", "idempotency"),
    ("fingerprint: {explain: true}", "fingerprint"), ("content_coding: pass", "content_coding"),
    ("record: status", "record"),
  ])
  func `what a batch cannot do is refused by name`(member: String, name: String) throws {
    let found = issues(route("\(Self.batch), \(member)")).filter { !$0.contains("warning") }
    #expect(found.contains { $0.contains("routes[0].\(name): cannot be combined with batch") }, "\(found)")
  }

  @Test func `sources of keys in the defaults are refused at each batch that inherits them`() {
    let text =
      upstream + """
        defaults: {caller: {parts: [address]}, key: {from: ["header:X"], max_length: 9}}
        routes:
          - {name: a, match: {path: /a}, \(Self.batch)}
          - {name: b, match: {path: /b}}
          - {name: c, match: {path: /c}, profile: square, \(Self.batch)}
        """
    let found = issues(text)
    #expect(found.count == 1, "\(found)")
    #expect(
      found.first?.contains("routes[0].batch: cannot be combined with key.from of the defaults") == true,
      "\(found)")
    #expect(issues(text.replacing("from: [\"header:X\"], ", with: "")).isEmpty)
  }

  @Test(arguments: ["/orders", "/orders/0", "/orders/0/user"])
  func `a caller within the items is refused`(pointer: String) {
    let text = upstream + "routes: [{name: r, caller: {parts: ['json:\(pointer)']}, \(Self.batch)}]\n"
    let found = issues(text)
    #expect(found.contains { $0.contains("routes[0].caller: cannot be combined with batch") }, "\(found)")
  }

  @Test func `a caller beside the items is taken`() throws {
    let text = upstream + "routes: [{name: r, caller: {parts: ['json:/orders_of']}, \(Self.batch)}]\n"
    #expect(try load(text).routes[0].caller?.parts == [.json("/orders_of")])
  }

  @Test(arguments: [
    (
      "", "profile: stripe, ",
      "routes[0].profile: sets idempotency: optional, which cannot be combined with batch: write idempotency"
    ),
    (
      "defaults: {profile: paypal}\n", "",
      "routes[0].batch: cannot be combined with idempotency: optional, which profile: paypal of the defaults"
    ),
    (
      "defaults: {idempotency: optional}\n", "",
      "routes[0].batch: cannot be combined with idempotency of the defaults: write idempotency: required"
    ),
    (
      "defaults: {profile: paypal, idempotency: optional}\n", "",
      "routes[0].batch: cannot be combined with idempotency of the defaults: "
    ),
    (
      "defaults: {on_store_failure: open}\n", "",
      "routes[0].batch: cannot be combined with on_store_failure of the defaults: write closed"
    ),
  ])
  func `what a batch cannot do is refused by the name of what it comes from`(
    defaults: String, members: String, issue: String
  ) {
    let found = issues(defaults + route(members + Self.batch))
    #expect(found.contains { $0.contains(issue) }, "\(found)")
  }

  @Test func `a profile with optional keys is overridden for a batch`() throws {
    let settings = try load(route("profile: stripe, idempotency: required, \(Self.batch)"))
    #expect(settings.routes[0].idempotency == .required)
  }

  @Test(arguments: [
    ("batch: {items: /orders, key: /id}", "routes[0].batch.results: is missing"),
    ("batch: {items: orders, key: /id, results: /r}", "routes[0].batch.items: must be a JSON pointer"),
    ("batch: {items: /o, key: '', results: /r}", "routes[0].batch.key: must name a member"),
    ("batch: {items: /o, key: /k, results: /r, max_items: 0}", "routes[0].batch.max_items: must be"),
    ("batch: {items: /o, key: /k, results: /1}", "routes[0].batch.results: must name members"),
    (Self.batch + ", key: {from: ['header:X']}", "routes[0].key: has from"),
  ])
  func `a faulty batch is refused at its place`(member: String, issue: String) {
    let found = issues(route(member))
    #expect(found.contains { $0.contains(issue) }, "\(found)")
  }
}
