import Foundation
import TestSupport
import Testing

/// The policy at `/.well-known/idempotency`.
struct PolicyDocumentTests {
  private static let path = "/.well-known/idempotency"

  @Test func `the policy is read, cached, and follows a reload`() async throws {
    try await Rig.run { rig in
      let client = rig.semel.client
      let first = try await client.send("GET", Self.path)
      #expect(first.status == 200)
      #expect(first["Content-Type"] == "application/json")
      #expect(first.text.contains(#""name":"orders""#) && first.text.contains(#""retention_seconds":86400"#))
      #expect(first.text.contains(#""remember_seconds":172800"#), "\(first.text)")
      let tag = try #require(first["ETag"])
      let cached = try await client.send("GET", Self.path, [("If-None-Match", tag)])
      #expect(cached.status == 304 && cached.text.isEmpty && cached["ETag"] == tag)
      #expect(cached["Content-Length"] == nil)
      let head = try await client.send("HEAD", Self.path)
      #expect(head.status == 200 && head["Content-Length"] == "\(first.text.utf8.count)")
      try await rig.reload { $0.route["retention"] = "1h" }
      let changed = try await client.send("GET", Self.path, [("If-None-Match", tag)])
      #expect(changed.status == 200 && changed.text.contains(#""retention_seconds":3600"#))
      #expect(rig.backend.requests.isEmpty)
      try await rig.semel.counter("semel_requests_total", label: #"outcome="reported""#, isAtLeast: 4)
    }
  }

  @Test func `a policy that is off leaves its path to the backend`() async throws {
    try await Rig.run(Configuration(top: ["policy_document": "off"])) { rig in
      let passed = try await rig.semel.client.send("GET", Self.path)
      #expect(passed.status == 201)
      #expect(rig.backend.requests.map(\.path) == [Self.path])
    }
  }

  @Test func `other methods at its path go by the routes`() async throws {
    try await Rig.run { rig in
      let passed = try await rig.semel.client.send("POST", Self.path, body: "{}")
      #expect(passed.status == 201)
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test func `a browser is led to the page in words, and a program gets the document`() async throws {
    let page = "https://docs.example.com/problem-codes"
    try await Rig.run(Configuration(top: ["policy_page": page])) { rig in
      let client = rig.semel.client
      let accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
      let led = try await client.send("GET", Self.path, [("Accept", accept)])
      #expect(led.status == 303 && led["Location"] == page && led["Vary"] == "Accept")
      for accept in ["*/*", "application/json", "text/htmlx"] {
        let document = try await client.send("GET", Self.path, [("Accept", accept)])
        #expect(document.status == 200 && document["Content-Type"] == "application/json")
        #expect(document["Vary"] == "Accept")
      }
      try await rig.reload { $0.top["policy_page"] = nil }
      #expect(try await client.send("GET", Self.path, [("Accept", accept)]).status == 200)
    }
  }

  @Test func `a problem's type leads to its code`() async throws {
    try await Rig.run { rig in
      let type = try #require(try await rig.order(nil).problem?.type)
      let target = try #require(type.split(separator: "#").first)
      let policy = try await rig.semel.client.send("GET", String(target))
      #expect(policy.text.contains("\"type\":\"\(type)\""))
    }
  }
}
