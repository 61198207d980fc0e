import Idempotency
import Settings
import Testing

/// `cors` of a route.
struct CORSTests {
  @Test(
    arguments: [
      ("cors: false", nil), ("cors: true", CORSPolicy()),
      (
        "cors: {origins: [https://shop.example, \"http://localhost:3000\", \"http://[::1]:8\"]}",
        CORSPolicy(origins: ["https://shop.example", "http://localhost:3000", "http://[::1]:8"])
      ),
      (
        "cors: {origins: [chrome-extension://abc], credentials: true}",
        CORSPolicy(origins: ["chrome-extension://abc"], credentials: true)
      ),
    ] as [(String, CORSPolicy?)])
  func `the setting is read`(member: String, policy: CORSPolicy?) throws {
    #expect(try load(route(member)).routes[0].cors == policy)
  }

  @Test func `a route overrides the defaults`() throws {
    let text =
      upstream + "defaults: {cors: true}\n"
      + "routes: [{name: r, caller: {parts: [address]}, match: {path: /r}, cors: false}, {name: s, idempotency: off}]\n"
    #expect(try load(text).routes.map(\.cors) == [nil, CORSPolicy()])
  }

  @Test(arguments: [
    ("cors: yes", "54: routes[0].cors: must be true, false or {origins: [https://shop.example]}"),
    (
      "cors: {credentials: true}",
      "54: routes[0].cors.origins: is missing: name the origins whose pages may read Semel's own responses, "
        + "such as [https://shop.example], or write cors: true"
    ),
    (
      "cors: {origins: []}",
      "64: routes[0].cors.origins: must name an origin, such as https://shop.example; or write cors: true"
    ),
    (
      "cors: {origins: [\"*\"]}",
      "65: routes[0].cors.origins[0]: must name each origin, such as https://shop.example; a * would allow every page"
    ),
    (
      "cors: {origins: [\"null\"]}",
      "65: routes[0].cors.origins[0]: must be a page's own origin, such as https://shop.example; "
        + "every sandboxed page sends null"
    ),
    (
      "cors: {origins: [a://b, a://b]}",
      "72: routes[0].cors.origins[1]: names an origin twice; take one of them out"
    ),
    (
      "cors: {origins: [\"https://shop.example:443\"]}",
      "65: routes[0].cors.origins[0]: must leave the scheme's own port out, as browsers do"
    ),
    (
      "cors: {origins: [a://b], credentials: maybe}",
      "86: routes[0].cors.credentials: must be true or false"
    ),
    (
      "cors: {origin: [a://b], origins: [a://b]}",
      "55: routes[0].cors.origin: unknown member; did you mean origins?"
    ),
  ])
  func `a wrong value is refused at its place`(member: String, issue: String) {
    #expect(issues(route(member)) == ["2:\(issue)"])
  }

  @Test(arguments: [
    "shop.example", "https://Shop.example", "https://shop.example/", "https://me@shop.example", "https:shop",
  ])
  func `what no browser sends as an origin is refused`(origin: String) {
    #expect(
      issues(route("cors: {origins: [\"\(origin)\"]}")) == [
        "2:65: routes[0].cors.origins[0]: must be an origin as browsers send it, in lower case and without a path: "
          + "https://shop.example"
      ])
  }

  @Test func `the setting is shown as it was written`() throws {
    let members = "cors: {origins: [https://shop.example]}"
    let shown = try load(route(members)).shownJSON
    #expect(shown.contains(#""cors":{"origins":["https://shop.example"],"credentials":false}"#), "\(shown)")
    #expect(try load(route("cors: true")).shownJSON.contains(#""cors":true"#))
  }
}
