import Testing

/// Each kind of error in an upstream, and in the choice of one, with its exact text and place.
struct UpstreamRefusalTests {
  @Test(arguments: [
    ("{}", "1:1: upstreams: is missing: name a backend, such as {backend: {url: \"http://127.0.0.1:9000\"}}"),
    (
      "upstreams: {}",
      "1:12: upstreams: must name a backend, such as {backend: {url: \"http://127.0.0.1:9000\"}}"
    ),
    (
      "upstreams: {a: {}}",
      "1:16: upstreams.a.url: is missing: write http://host:port, https://host:port or unix:/path"
    ),
    (
      "upstreams: {a: {url: \"h:1\"}}",
      "1:22: upstreams.a.url: must be http://host:port, https://host:port or unix:/path"
    ),
    (
      "upstreams: {a: {url: \"http://u@h:1\"}}",
      "1:22: upstreams.a.url: must not hold a user: write http://host:port, https://host:port or unix:/path"
    ),
    (
      "upstreams: {a: {url: \"http://h:1/api\"}}",
      "1:22: upstreams.a.url: must end after the port, since the request's own path is sent: "
        + "write http://host:port, https://host:port or unix:/path"
    ),
    ("upstreams: {a: {url: \"http://h:0\"}}", "1:22: upstreams.a.url: must have a port from 1 to 65535"),
    (
      "upstreams: {a: {url: \"http://[::g]:1\"}}",
      "1:22: upstreams.a.url: must have an IPv6 address between [ and ], such as 127.0.0.1:8080 or [::1]:8080"
    ),
    (
      "upstreams: {a: {url: \"http://h\", host: \"a b\"}}",
      "1:40: upstreams.a.host: must be preserve, upstream, or a name or an address with or without a port, such as "
        + "orders.example.com or [::1]:8080"
    ),
    (
      "upstreams: {a: {url: \"http://h\", host: \"a:0\"}}",
      "1:40: upstreams.a.host: must have a port from 1 to 65535"
    ),
    (
      "upstreams: {\"a b\": {url: \"http://h\"}}",
      "1:13: upstreams.a b: must be a name of 1 to 64 letters, digits, dots, hyphens and underscores"
    ),
    (
      "upstreams: {a: {url: \"http://h\", connect_retries: 101}}",
      "1:51: upstreams.a.connect_retries: must be a whole number from 0 to 100"
    ),
    (
      "upstreams: {a: {url: \"http://h\", response_timeout: 0s}}",
      "1:52: upstreams.a.response_timeout: must be at least 1ms"
    ),
    ("[]", "1:1: must be a mapping of members, not a list"),
  ]) func `an upstream with a fault is refused`(text: String, issue: String) {
    #expect(issues(text) == [issue])
  }

  @Test func `a route among several upstreams has to name its own`() {
    let text = """
      upstreams: {orders: {url: "http://h:1"}, users: {url: "http://h:2"}}
      routes:
        - {name: a, idempotency: off}
        - {name: b, idempotency: off, upstream: user}
        - {name: c, idempotency: off, upstream: elsewhere}
        - {name: d, idempotency: off, upstream: users}
      """
    #expect(
      issues(text) == [
        "3:5: routes[0].upstream: is missing: there are several; write orders or users",
        "4:43: routes[1].upstream: names no upstream; did you mean users?",
        "5:43: routes[2].upstream: names no upstream; write orders or users",
      ])
  }
}
