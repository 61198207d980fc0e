import Testing

@testable import Conformance

struct OracleTests {
  private static let endpoint = Endpoint("http://127.0.0.1/orders")!

  private func response(_ body: String, status: Int = 200) -> Exchange.Outcome {
    .response(RawResponse(status: status, body: Array(body.utf8)))
  }

  @Test func `a count is the number at its pointer`() {
    let oracle = OracleSettings.count(Self.endpoint, pointer: "/executed")
    #expect(oracle.reading(of: response(#"{"executed":7}"#)) == .count(7))
    #expect(oracle.reading(of: response(#"{"executed":"7"}"#)) == .failed("no whole number at /executed"))
    #expect(oracle.reading(of: response("{}", status: 401)) == .failed("status 401"))
    #expect(
      oracle.reading(of: response("<html>\u{1B}[2J"))
        == .failed("no JSON: at byte 0 it reads <html>?[2J"))
    #expect(
      oracle.reading(of: response(#"[{"id":"a","request":amount=1&currency=usd&to=somebody}]"#))
        == .failed("no JSON: at byte 21 it reads amount=1&currency=usd&to"))
    #expect(
      oracle.reading(of: response(#"{"executed":7"#))
        == .failed("no JSON: it ends within a value, after 13 bytes"))
    #expect(oracle.reading(of: response("")) == .failed("no JSON: the body is empty"))
    #expect(oracle.reading(of: .none("closed")) == .failed("no response"))
    #expect(oracle.reading(of: .endless("too long")) == .failed("too long"))
  }

  @Test func `a list is counted by its ids`() {
    let oracle = OracleSettings.list(Self.endpoint, id: "/id")
    #expect(oracle.reading(of: response(#"[{"id":"a"},{"id":2}]"#)) == .ids(["a", "2"]))
    #expect(oracle.reading(of: response(#"{"orders":[{"id":"a"}],"next":null}"#)) == .ids(["a"]))
    #expect(oracle.reading(of: response(#"[{"name":"a"}]"#)) == .failed("an element without an id at /id"))
    #expect(oracle.reading(of: response(#"{"a":[],"b":[]}"#)) == .failed("no list"))
  }

  @Test func `executions are the difference of two readings`() {
    let oracle: OracleSettings? = .count(Self.endpoint, pointer: "")
    #expect(oracle.executions(before: .count(3), after: .count(5), in: Evidence()) == .exactly(2))
    #expect(oracle.executions(before: .failed("no"), after: .count(5), in: Evidence()) == .unknown)
    // A list that shows the newest alone.
    let list: OracleSettings? = .list(Self.endpoint, id: "/id")
    #expect(
      list.executions(before: .ids(["a", "b"]), after: .ids(["b", "c"]), in: Evidence()) == .exactly(1))
    let none: OracleSettings? = nil
    #expect(none.executions(before: nil, after: nil, in: Evidence()) == .unknown)
  }

  @Test func `ids in responses are counted once`() {
    let oracle: OracleSettings? = .responses(id: "/id")
    let request = RawRequest(method: "POST", target: "/", lines: [])
    func evidence(_ bodies: String...) -> Evidence {
      Evidence(exchanges: bodies.map { Exchange(request: request, outcome: response($0)) })
    }
    #expect(
      oracle.executions(before: nil, after: nil, in: evidence(#"{"id":1}"#, #"{"id":1}"#)) == .atLeast(1))
    #expect(
      oracle.executions(before: nil, after: nil, in: evidence(#"{"id":1}"#, #"{"id":2}"#)) == .atLeast(2))
    #expect(oracle.executions(before: nil, after: nil, in: evidence(#"{"id":1}"#, "{}")) == .unknown)
  }
}
