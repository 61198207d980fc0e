import Idempotency
import Settings
import Testing

struct SyntaxTests {
  @Test(arguments: ["", "\n\n", "# only a comment\n", "---\n", "\u{FEFF}"])
  func `an empty file is refused`(text: String) {
    #expect(issues(text) == ["1:1: the file is empty: write at least upstreams and routes"])
  }

  @Test(arguments: [
    (
      "a: [1\nb: 2\n",
      "2:2: not valid YAML: while parsing a flow sequence (line 1, column 4), did not find expected ',' or ']'"
    ),
    (
      "a: 1\n\tb: 2\n",
      "2:1: not valid YAML: while scanning a plain scalar (line 1, column 4), found a tab character that violates indentation"
    ),
    (
      "a: \"x",
      "1:6: not valid YAML: while scanning a quoted scalar (line 1, column 4), found unexpected end of stream"
    ),
    ("a: *b", "1:4: not valid YAML: found undefined alias"),
    (
      "a: 1\n---\nb: 2\n",
      "2:1: not valid YAML: expected a single document in the stream (line 1, column 1), but found another document"
    ),
    ("a: 1\nb: x\u{7}y\n", "2:5: not valid YAML: control characters are not allowed"),
    (
      "a: {b: ${PORT}}\n",
      "1:9: not valid YAML: while parsing a flow mapping (line 1, column 4), did not find expected ',' or '}'; "
        + "a ${NAME} has to be quoted within [ ] and { }"
    ),
  ]) func `invalid YAML is refused with its place`(text: String, issue: String) {
    #expect(issues(text) == [issue])
  }

  @Test func `a merge key is refused with what to write instead`() {
    let text = "upstreams: {b: {url: \"http://h\"}}\nroutes: [{name: r, <<: {lease: 5s}}]\n"
    #expect(
      issues(text).contains {
        $0.hasSuffix(
          "unknown member; merge keys are not taken: write the members out, or put them in defaults")
      })
  }

  @Test func `repeated members are reported together with all other errors`() {
    let text =
      upstream + """
        workers: 1
        "workers": x
        workers: 2
        store:
          path: a
          path: b
        limits: {max_in_flight: 1, max_in_flight: 2, color: 1}
        upstreams: {}
        """
    #expect(
      issues(text) == [
        "3:1: workers: is given twice, first in line 2; take one of them out",
        "4:1: workers: is given twice, first in line 2; take one of them out",
        "7:3: store.path: is given twice, first in line 6; take one of them out",
        "8:28: limits.max_in_flight: is given twice, first in line 8; take one of them out",
        "8:46: limits.color: unknown member; allowed are max_connections, max_in_flight, caller_in_flight, caller_new_keys, body_memory, header_bytes, "
          + "header_timeout, body_timeout, write_timeout, idle_timeout, tunnel_timeout, http2_max_streams",
        "9:1: upstreams: is given twice, first in line 1; take one of them out",
      ])
  }

  @Test func `upstreams of the same name are refused`() {
    #expect(
      issues("upstreams:\r\n  a: {url: \"http://h\"}\r\n  a: {url: \"http://i\"}\r\n") == [
        "3:3: upstreams.a: is given twice, first in line 2; take one of them out"
      ])
  }

  @Test func `an anchored key that is given twice is refused alone`() {
    #expect(
      issues("&k workers: 1\n*k : 2\nlog: 5\n") == ["1:1: a member is given twice; take one of them out"])
  }

  @Test func `endless nesting is refused`() {
    let text = "a: " + String(repeating: "[", count: 100_000)
    #expect(
      issues(text) == [
        "1:5: not valid YAML: while parsing (line 1, column 5), Maximum nesting level reached, "
          + "set with yaml_set_max_nest_level())"
      ])
  }

  @Test func `anchors and aliases work`() throws {
    let settings = try load(
      """
      upstreams: {a: {url: "http://h:1", connect_timeout: &t 3s, settle: *t}}
      """)
    #expect(settings.upstreams["a"]?.settle == 3000)
  }

  @Test func `errors come in the order of the file, all at once`() {
    let text = """
      routes:
        - name: a
          lease: 5
          colour: red
        - name: b
          caller: {parts: [x]}
      workers: many
      upstreams:
        backend: {url: ftp://h}
      """
    #expect(
      issues(text) == [
        "2:5: routes[0].caller: is missing: say who the caller is, such as {parts: [\"header:Authorization\"]}, "
          + "or write idempotency: off",
        "3:12: routes[0].lease: has no unit: write it in ms, s, m, h or d, such as 5s",
        "4:5: routes[0].colour: unknown member; allowed are name, match, upstream, profile, idempotency, key, caller, "
          + "endpoint, spelling, encoded_slashes, method_override, content_coding, forward_key, fingerprint, "
          + "mismatch_status, in_flight_status, echo_key, duplicates, wait_timeout, max_waiters, lease, retention, remember, "
          + "unknown_retention, outcomes, released, behind, on_unknown, max_attempts, on_store_failure, "
          + "max_request_body, body_timeout, max_response_body, response_timeout, set_cookie, record, replay, batch, "
          + "stream, cors, shadow, retries, reconcile",
        "6:22: routes[1].caller.parts[0]: must be \(callerForms); did you mean header:x?",
        "7:10: workers: must be a whole number from 0 to 1024",
        "9:18: upstreams.backend.url: must be http://host:port, https://host:port or unix:/path",
      ])
  }

  @Test func `an issue is described with file, place and member`() {
    let result = Settings.load(text: upstream + "workers: x", file: "dir/config.yaml", environment: [:])
    guard case .failure(let errors) = result else {
      Issue.record("the file was taken")
      return
    }
    let line = "dir/config.yaml:2:10: workers: must be a whole number from 0 to 1024"
    #expect("\(errors)" == line)
    #expect(errors.issues.first?.description == line)
  }
}
