import NIOCore
import Testing
import Wire

@testable import Idempotency

/// The comparison of two payloads by the digests of their members.
struct MemberDigestsTests {
  private static let digests = LogDigests(secret: "0123456789abcdef0123456789abcdef")
  private static let id = RecordID(Digest256.sha256(of: Array("a".utf8)))

  private func head(_ type: String = "application/json", coding: String? = nil) throws -> MessageHead {
    var head = try MessageHead(method: "POST", target: "/")
    try head.append(name: "Content-Type", value: type)
    if let coding { try head.append(name: "Content-Encoding", value: coding) }
    return head
  }

  private func members(
    _ body: String, _ recipe: Recipe = Recipe(), id: RecordID = Self.id, digests: LogDigests = Self.digests
  ) throws -> MemberDigests? {
    MemberDigests(of: ByteBuffer(string: body), head: try head(), recipe: recipe, id: id, by: digests)
  }

  private func difference(
    _ first: String, _ second: String, _ recipe: Recipe = Recipe()
  ) throws -> PayloadDifference? {
    let members = try #require(try members(first, recipe))
    return members.difference(
      to: ByteBuffer(string: second), head: try head(), recipe: recipe, id: Self.id, by: Self.digests)
  }

  @Test(arguments: [
    (#"{"amount":1,"item":"a"}"#, #"{ "item" : "a", "amount":2 }"#, "/amount"),
    (#"{"a":1}"#, #"{"a":1,"note":{}}"#, "+/note"), (#"{"a":1,"b":2}"#, #"{"a":1}"#, "-1"),
    (#"{"a":{"b":[1,2]},"c":1,"d":2}"#, #"{"a":{"b":[2,1]},"c":1,"e":3}"#, "/a +/e -1"),
    (#"{"a":1}"#, #"{"\u0061":1}"#, "(no top-level member)"), (#"{"a":1}"#, #"{"a":1.5}"#, "/a"),
    (#"{"a":1,"b":20}"#, #"{"a":1.0,"b":2e1}"#, "(no top-level member)"),
    (#"{}"#, #"{}"#, "(no top-level member)"), (#"{"a/b~":1}"#, #"{"a/b~":2}"#, "/a~1b~0"),
    // Characters that a terminal or a reader of logs would take for a command or a line's end are escaped.
    (#"{"ä\u009b2J":1}"#, #"{"ä\u009b2J":2}"#, #"/ä\u009B2J"#),
    (
      #"{"\u007f\u0085\u2028\u202e\u2066":1}"#, #"{"\u007f\u0085\u2028\u202e\u2066":2}"#,
      #"/\u007F\u0085\u2028\u202E\u2066"#
    ),
  ])
  func `the members that differ are named`(first: String, second: String, text: String) throws {
    #expect(try difference(first, second)?.text == text)
  }

  @Test func `what the fingerprint leaves out does not differ`() throws {
    let recipe = Recipe(ignore: [.json("/sent_at"), .json("/meta/time")])
    let first = #"{"a":1,"meta":{"time":1,"x":1},"sent_at":1}"#
    #expect(try difference(first, #"{"a":2,"meta":{"time":2,"x":1},"sent_at":2}"#, recipe)?.changed == ["/a"])
    #expect(try difference(first, #"{"a":1,"meta":{"time":2,"x":2}}"#, recipe)?.changed == ["/meta"])
  }

  @Test func `of members that alone count, others do not differ`() throws {
    let recipe = Recipe(only: [.json("/a"), .json("/meta/id")])
    let first = #"{"a":1,"meta":{"id":1,"x":1},"b":1}"#
    #expect(try difference(first, #"{"a":2,"meta":{"id":1,"x":2},"c":2}"#, recipe)?.text == "/a")
    #expect(try difference(first, #"{"a":1,"meta":{"id":2}}"#, recipe)?.text == "/meta")
  }

  @Test func `a difference is short, whatever a client names`() throws {
    let names = (0..<20).map { "\"\($0)\(String(repeating: "x", count: 500))\":1" }.joined(separator: ",")
    let text = try #require(try difference("{}", "{\(names)}")).text
    #expect(text.utf8.count < 1000 && text.hasSuffix("…"), "\(text)")
    // One character for the eye, of any number of marks.
    let marked = try #require(try difference("{}", "{\"a\(String(repeating: "\u{301}", count: 10_000))\":1}"))
      .text
    #expect(marked.utf8.count < 200 && marked.hasSuffix("…"), "\(marked)")
  }

  @Test func `of many members the first are compared`() throws {
    func body(_ range: Range<Int>, _ value: Int) -> String {
      "{" + range.map { "\"m\($0 + 1000)\":\(value)" }.joined(separator: ",") + "}"
    }
    let members = try #require(try members(body(0..<100, 1)))
    #expect(members.members.count == 32 && members.isCut)
    #expect(try difference(body(0..<100, 1), body(0..<100, 2))?.changed.count == 32)
    // A member before the first ones may be one of those that were not kept.
    let more = try #require(try difference(body(1..<100, 1), body(0..<100, 1)))
    #expect(more.changed.isEmpty && more.added.isEmpty && more.missing == 0)
  }

  @Test func `only a JSON object has members`() throws {
    for body in ["[1]", "1", "{", #"{"a":1,"a":2}"#, ""] { #expect(try members(body) == nil) }
    #expect(try members("{}", Recipe(body: .raw)) == nil)
    let body = ByteBuffer(string: "{}")
    for head in [try head("text/plain"), try head(coding: "gzip")] {
      #expect(MemberDigests(of: body, head: head, recipe: Recipe(), id: Self.id, by: Self.digests) == nil)
    }
    #expect(try difference("{}", "[]") == nil)
  }

  @Test func `the same member has another digest in another record and under another secret`() throws {
    let body = #"{"amount":1}"#
    let own = try #require(try members(body)?.members.first)
    let other = try #require(
      try members(body, id: RecordID(Digest256.sha256(of: Array("b".utf8))))?.members.first)
    let secret = try #require(
      try members(body, digests: LogDigests(secret: "another secret of some length"))?.members.first)
    #expect(Set([own.name, other.name, secret.name]).count == 3)
    #expect(Set([own.value, other.value, secret.value]).count == 3)
  }
}
