import Testing

struct UnsupportedTests {
  @Test(arguments: [
    ("batch: {items: /x}", "batch: not supported yet; take it out")
  ]) func `a member that a route cannot have yet is refused by name`(member: String, issue: String) {
    #expect(issues(route(member)) == ["2:48: routes[0].\(issue)"])
  }

  @Test func `neutral values of unbuilt members are accepted`() throws {
    _ = try load(
      """
      upstreams: {b: {url: "http://h:1", host: preserve, http2: off}}
      store: {kind: redis, url: redis://h, topology: standalone}
      policy_document: off
      routes: [{name: r, caller: {parts: [address]}, cors: false, shadow: false}]
      """)
  }
}
