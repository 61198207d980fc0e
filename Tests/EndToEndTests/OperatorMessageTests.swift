import Foundation
import TestSupport
import Testing

/// Refusals of the admin listener, which name the member at fault and say what is expected there.
struct OperatorMessageTests {
  private static let resolve = String(repeating: "A", count: 43) + "/resolve"

  /// The response to a document.
  private func send(_ rig: Rig, _ path: String, _ body: String) async throws -> ReceivedResponse {
    try await rig.semel.admin.send(
      "POST", "/v1/records/" + path, [("Content-Type", "application/json")], body: body)
  }

  /// The detail of the refusal of a document.
  private func refusal(_ rig: Rig, _ path: String, _ body: String) async throws -> String {
    struct Problem: Decodable { let detail: String }
    let refused = try await send(rig, path, body)
    #expect(refused.status == 400, "\(body): \(refused.text)")
    return try JSONDecoder().decode(Problem.self, from: Data(refused.body)).detail
  }

  /// A document for *put* with these members of its three parts.
  private static func put(
    record: String = #""key":"k""#, payload: String = "", resolution: String = #""status":201"#
  ) -> String {
    let record =
      #"{"route":"orders","caller":{"header:Authorization":"Bearer a"},"path":"/v1/orders","method":"POST",\#(record)}"#
    return
      #"{"record":\#(record),"payload":{\#(payload)},"resolution":{"outcome":"applied",\#(resolution)}}"#
  }

  private static let number = "must be a whole number, such as"
  /// Documents with a member of another kind, and what is wrong with each.
  private static let faults: [(path: String, body: String, fault: String)] = [
    (resolve, #"{"outcome":"applied","status":201.5}"#, "status \(number) 201"),
    (resolve, #"{"outcome":"applied","status":"201"}"#, "status \(number) 201"),
    (resolve, #"{"outcome":"not_applied","attempt":1.5}"#, "attempt \(number) 1"),
    (resolve, #"{"outcome":"not_applied","amend":"yes"}"#, "amend must be true or false"),
    (resolve, #"{"outcome":"maybe"}"#, #"outcome must be "applied" or "not_applied""#),
    (resolve, #"{"outcome":"applied","status":201,"body_base64":7}"#, "body_base64 must be a text"),
    (
      resolve, #"{"outcome":"applied","status":201,"headers":{"status":1}}"#,
      #"headers must be an object of texts, such as {"Content-Type": "application/json"}"#
    ),
    (resolve, #"{"status":201}"#, "outcome is missing"),
    (resolve, "[]", "it is not a JSON object"), (resolve, "{", "it is not a JSON object"),
    (
      "put", put(record: #""key":5"#), "record.key must be a text, or a list with a text for each part"
    ),
    ("put", put(payload: #""body_base64":5"#), "payload.body_base64 must be a text"),
    ("put", put(resolution: #""status":2e-1"#), "resolution.status \(number) 201"),
    ("put", #"{"record":7,"payload":{},"resolution":{"outcome":"applied"}}"#, "record must be an object"),
    ("find", #"{"key":"k"}"#, "route is missing"),
    (
      "find", #"{"route":"orders","key":"k","bodyBase64":""}"#,
      "there is no member bodyBase64; there are: route, key, caller, path, method, host"
    ),
  ]

  @Test func `a member of another kind is named with what is expected`() async throws {
    try await Rig.run { rig in
      for (path, body, fault) in Self.faults {
        let detail = try await refusal(rig, path, body)
        #expect(detail == "the body is not the JSON that is expected here: " + fault)
      }
    }
  }

  @Test func `a body that is not Base64, or given twice, is refused as such`() async throws {
    try await Rig.run { rig in
      let base64 = "must be Base64 (RFC 4648, section 4), padded and without line ends, such as eyJpZCI6MX0="
      for text in ["!!", "Y Q=="] {
        let resolution = #"{"outcome":"applied","status":201,"body_base64":"\#(text)"}"#
        let refused = try await refusal(rig, Self.resolve, resolution)
        #expect(refused == "body_base64 " + base64)
        let payload = Self.put(payload: #""body_base64":"\#(text)""#)
        #expect(try await refusal(rig, "put", payload) == "payload.body_base64 " + base64)
      }
      let twice = #"{"outcome":"applied","status":201,"body":"a","body_base64":"YQ=="}"#
      #expect(
        try await refusal(rig, Self.resolve, twice)
          == "body and body_base64 are both given: give one of the two")
    }
  }

  @Test func `a member that an object has twice is refused`() async throws {
    try await Rig.run { rig in
      for (path, body, member) in [
        (Self.resolve, #"{"outcome":"applied","outcome":"not_applied"}"#, "outcome"),
        (Self.resolve, #"{"outcome":"applied","status":201,"st\u0061tus":202}"#, "status"),
        (Self.resolve, #"{"outcome":"applied","status":201, "status" : 201}"#, "status"),
        (
          Self.resolve, #"{"outcome":"applied","status":201,"headers":{"A":"\"","B":"2","A":"1"}}"#,
          "headers.A"
        ),
        ("put", Self.put(record: #""key":"a","key":"b""#), "record.key"),
        ("find", #"{"route":"orders","key":["a"],"key":"b"}"#, "key"),
        ("search", #"{"key":"a","key":"b"}"#, "key"),
      ] {
        #expect(try await refusal(rig, path, body) == "\(member) is given twice: give it once", "\(body)")
      }
      // The same in another encoding, which the decoder takes as well.
      let wide = #"{"outcome":"applied","outcome":"not_applied"}"#.utf8.flatMap { byte -> [UInt8] in
        [byte, 0]
      }
      let refused = try await rig.semel.admin.send(
        "POST", "/v1/records/" + Self.resolve, [("Content-Type", "application/json")],
        body: String(decoding: wide, as: UTF8.self))
      #expect(refused.status == 400 && refused.text.contains("JSON in UTF-8"), "\(refused.text)")
      // Equal names of two objects, and names within a text.
      let texts = #"{"outcome":"applied","status":200,"headers":{"status":"1"},"body":"{\"a\":1,\"a\":1}"}"#
      let resolved = try await send(rig, Self.resolve, texts)
      #expect(resolved.status == 404, "\(resolved.text)")
    }
  }

  @Test func `a key with too many or too few parts is refused with those of the route`() async throws {
    let pair =
      "{name: pair, match: {methods: [POST], path: /v1/pair}, caller: {shared: true}, "
      + "key: {from: [['header:A', 'query:b']]}}"
    try await Rig.run(Configuration(firstRoutes: [pair])) { rig in
      let one =
        "route orders takes a key of 1 part (header:idempotency-key), and 2 are given: give key once for"
      let two = "route pair takes a key of 2 parts (header:a, query:b), and 1 is given: give key once for"
      for command in [["show"], ["forget"], ["resolve", "--not-applied"]] {
        let many = try await rig.key(command + Rig.selection("a") + ["--key", "b"], ends: .code(1))
        #expect(many.errors.contains(one), "\(many.errors)")
        let few = try await rig.key(command + ["--route", "pair", "--key", "a"], ends: .code(1))
        #expect(few.errors.contains(two), "\(few.errors)")
      }
      let found = try await rig.key(
        ["find", "--route", "orders", "--key", "a", "--key", "b"], ends: .code(1))
      #expect(found.errors.contains(one), "\(found.errors)")
      let empty = "key is empty: give the one that the client sends"
      let command = try await rig.key(["show"] + Rig.selection(""), ends: .code(2))
      #expect(command.errors.hasPrefix("Error: --\(empty)\n"), "\(command.errors)")
      let record = #"{"route":"orders","key":"","caller":{"header:Authorization":"Bearer a"}"#
      let described = record + #","path":"/v1/orders","method":"POST"}"#
      #expect(try await refusal(rig, "find", described) == empty)
    }
  }
}
