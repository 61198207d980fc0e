import Testing

/// Warnings of values that no two deliveries of a request have in common, and of long leases.
extension WarningTests {
  @Test(arguments: [
    ("\"header:X-Request-Id\"", ["header:x-request-id"]), ("\"header:Date\", address", ["header:date"]),
    ("\"header:Traceparent\"", ["header:traceparent"]), ("\"header:DPoP\"", ["header:dpop"]),
    ("\"header:X-Amz-Date\"", ["header:x-amz-date"]),
    ("\"header:Stripe-Signature\", \"header:X-Account\"", ["header:stripe-signature"]),
    ("\"query:nonce\"", ["query:nonce"]), ("\"json:/meta/timestamp\"", ["json:/meta/timestamp"]),
    ("\"header:X-Account\", \"query:note\", \"header:X-Candidate\"", []),
  ])
  func `a part that each delivery has anew is warned of beside any others`(parts: String, named: [String])
    throws
  {
    let warned = try warnings(upstream + "routes: [{name: r, caller: {parts: [\(parts)]}}]\n")
      .filter { $0.contains("different in each delivery") }
    #expect(warned.count == named.count)
    for (warning, part) in zip(warned, named) {
      #expect(warning.contains("routes[0].caller: has the part \(part), which"))
    }
  }

  @Test func `a field that each delivery has anew is warned of in a fingerprint, and a long lease`() throws {
    func warned(_ members: String) throws -> [String] {
      try warnings(upstream + "routes: [{name: r, caller: {parts: [address]}, \(members)}]\n")
        .filter { $0.contains("fingerprint") || $0.contains("lease") }
    }
    let date = try warned("fingerprint: {headers: [X-Kind, Date]}")
    #expect(date.count == 1 && date[0].contains("routes[0].fingerprint: lists date"))
    #expect(try warned("fingerprint: {headers: [X-Kind]}, lease: 1h").isEmpty)
    let lease = try warned("lease: 999d")
    #expect(lease.count == 1 && lease[0].contains("routes[0].lease: is 999d"))
  }
}
