import NIOCore
import Testing
import Wire

struct FieldNameListTests {
  @Test(arguments: [
    ("x-request-id", "X-Request-Id", true), ("x-request-id", "x-request-ids", false),
    ("x-request-id", "x-request-i", false), ("x-trace-*", "X-Trace-A", true), ("x-trace-*", "x-trace-", true),
    ("x-trace-*", "x-trace", false), ("*", "anything", true), ("a", "", false),
    ("x-request-id", "X_Request-ID", true), ("x_request", "x-request", false),
    ("x-trace-*", "X_TRACE_A", true),
  ])
  func `a name is whole, or the beginning of several`(pattern: String, name: String, isThere: Bool) {
    #expect(FieldNameList([pattern]).contains(name) == isThere)
    #expect(FieldNameList(["other", pattern]).contains(name) == isThere)
    #expect(!FieldNameList().contains(name))
  }

  @Test(arguments: [
    ("RateLimit", true), ("ratelimit-policy", true), ("X-RateLimit-Remaining", true),
    ("X-Rate-Limit-Reset", true),
    ("X-Rate", false), ("Rate-Limit", false), ("Retry-After", false),
  ])
  func `the fields of rate limits are known by their beginnings`(name: String, isOne: Bool) {
    #expect(FieldNameList.rateLimits.contains(name) == isOne)
  }

  @Test func `an omission leaves fields out of heads and of blocks of lines, known ones and others`() throws {
    let omission = FieldOmission(
      FieldNameList(["x-limit*", "location", "x-id"]), except: FieldNameList(["x-limit-kept"]))
    var head = MessageHead(start: .status(200, reason: 0..<0))
    for (name, value) in [
      ("A", "1"), ("Location", "/a"), ("X-Limit", "2"), ("X-Limit-Kept", "3"), ("X-ID", "4"), ("B", "5"),
    ] {
      try head.append(name: name, value: value)
    }
    var copied = ByteBuffer()
    head.copyFields(into: &copied, omitting: [], omission)
    #expect(String(buffer: copied) == "A: 1\r\nX-Limit-Kept: 3\r\nB: 5\r\n")
    var all = ByteBuffer()
    head.copyFields(into: &all)
    #expect(all.fieldLines(without: [], omission) == copied)
    #expect(
      String(buffer: all.fieldLines(without: FieldNameSet(.location), FieldOmission(FieldNameList())))
        .hasPrefix(
          "A: 1\r\nX-Limit: 2\r\n"))
  }
}
