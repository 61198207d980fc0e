import Testing

/// Routes that contradict what is around them: the store, other routes, the defaults, members of the top.
struct RouteContradictionTests {
  @Test func `a lease has to outlast two commands of the store`() {
    let text =
      upstream + """
        store: {kind: redis, url: "redis://h", timeout: 2s}
        routes: [{name: r, caller: {parts: [address]}, lease: 3s}]
        """
    #expect(
      issues(text) == [
        "3:55: routes[0].lease: must be at least twice the store's timeout, which is 2s: else one slow reply uses it up"
      ])
  }

  @Test func `a route that an earlier one shadows is refused`() {
    let text =
      upstream + """
        routes:
          - {name: all, match: {path: /**}, idempotency: off}
          - {name: orders, match: {path: /v1/orders}, caller: {parts: [address]}}
          - {name: broken, match: {path: v1}, caller: {parts: [address]}}
        """
    #expect(
      issues(text) == [
        "4:5: routes[1]: orders is never met: all (routes[0], line 3) takes all of its requests; "
          + "write it before that one, or narrow that one's match",
        "5:34: routes[2].match.path: must begin with a slash, such as /v1/orders/{id} or /v1/**",
      ])
  }

  @Test func `fields that identify a request must reach the backend`() {
    let text = """
      routes: [{name: r, caller: {parts: ["header:client_id"]}}]
      """
    #expect(
      issues(upstream + text) == [
        "2:10: routes[0]: goes by the header client_id, which does not reach the backend because of its underscore; "
          + "write underscores: pass at the top"
      ])
    #expect(issues(upstream + "underscores: pass\n" + text).isEmpty)
    #expect(issues(upstream + text.replacing("{name: r", with: "{idempotency: off, name: r")).isEmpty)
  }

  @Test func `fields that choose a route must reach the backend`() {
    let text = "underscores: pass\n" + route("match: {headers: {X_A: b}}")
    #expect(issues(text).isEmpty)
  }

  @Test func `schemes of the defaults serve the routes that go by Authorization`() {
    let text =
      upstream + """
        defaults: {caller: {schemes: [GNAP]}}
        routes:
          - {name: a, match: {path: /a}, caller: {parts: ["header:Authorization"]}}
          - {name: b, match: {path: /b}, caller: {parts: [address]}}
          - {name: c, match: {path: /c}, caller: {parts: [address], schemes: [GNAP]}}
        """
    #expect(
      issues(text) == [
        "6:70: routes[2].caller.schemes: is for the part header:Authorization alone; "
          + "add that to parts, or take schemes out"
      ])
  }

  @Test func `a fault of the defaults is reported once, and a contradiction with them at the route`() {
    let text =
      upstream + """
        defaults: {caller: {parts: [address]}, max_waiters: 0, remember: 24h}
        routes:
          - {name: a}
          - {name: b, retention: 48h}
        """
    #expect(
      issues(text) == [
        "2:53: defaults.max_waiters: must be a whole number from 1 to 100000",
        "5:26: routes[1].retention: must not be longer than remember: 2d against 1d",
      ])
  }

  @Test func `a format that contradicts the defaults is refused at the route, an inherited ignore is not`() {
    let text =
      upstream + """
        defaults: {caller: {parts: [address]}, fingerprint: {ignore: [/a]}, key: {max_length: 30}}
        routes:
          - {name: a, match: {path: /a}, fingerprint: {body: raw}}
          - {name: b, match: {path: /b}, key: {format: uuid}}
          - {name: c, match: {path: /c}, fingerprint: {body: raw, ignore: []}}
        """
    #expect(
      issues(text) == [
        "5:48: routes[1].key.format: lets no key pass, because max_length is 30 and a UUID has 36 characters"
      ])
  }

  @Test func `a profile whose retention is longer than remember of the defaults is refused at the route`() {
    let routes = """
      routes:
        - {name: a, match: {path: /a}, profile: paypal}
        - {name: b, match: {path: /b}, profile: paypal, remember: 45d}
        - {name: c, match: {path: /c}, profile: paypal, retention: 3s}
        - {name: d, match: {path: /d}, profile: ietf}
        - {name: e, match: {path: /e}}
      """
    func found(_ members: String) -> [String] {
      issues(upstream + "defaults: {caller: {parts: [address]}, \(members)}\n" + routes)
    }
    #expect(
      found("remember: 4s, retention: 2s") == [
        "4:43: routes[0].profile: sets retention: 45d, which is longer than remember: 4s of defaults: give the route "
          + "a remember of at least 45d"
      ])
    #expect(found("retention: 2s").isEmpty)
    // A contradiction of the defaults, or a fault in one of them, is refused once.
    #expect(
      found("remember: 4s") == [
        "2:50: defaults.remember: must not be shorter than retention: 4s against 1d"
      ])
    #expect(
      found("remember: 4s, retention: 0s") == ["2:65: defaults.retention: must be at least 1s"])
  }
}
