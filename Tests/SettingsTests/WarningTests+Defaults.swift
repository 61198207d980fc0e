import Testing

/// Warnings of members of `defaults`, each of which is given once for all routes that inherit the member.
extension WarningTests {
  private func found(_ defaults: String, _ routes: String) throws -> [String] {
    let caller = defaults.contains("caller:") ? "" : "caller: {parts: [address]}, "
    return try warnings(upstream + "defaults: {\(caller)\(defaults)}\nroutes: [\(routes)]\n")
  }

  @Test(arguments: [
    ["", ", key: {from: [\"header:X-Session-Token\"]}", ""],
    [", key: {from: [\"header:X-Session-Token\"]}", "", ", key: {from: [\"header:X-Session-Token\"]}"],
  ])
  func `two doubts about one caller are both given once, in whatever order the routes stand`(keys: [String])
    throws
  {
    let routes = keys.enumerated().map { "{name: r\($0), match: {path: /r\($0)}\($1)}" }
    let found = try found(
      "caller: {parts: [\"header:X-Session-Token\"]}", routes.joined(separator: ", "))
    #expect(found.count == 2, "\(found)")
    #expect(found.allSatisfy { $0.contains("defaults.caller: its only part is header:x-session-token") })
    for end in ["is another caller's and runs again; name", "sends another client's key gets its response;"] {
      #expect(found.contains { $0.contains(end) }, "\(found)")
    }
  }

  @Test func `two doubts about one on_unknown are both given`() throws {
    let both = "{name: r, match: {path: /r}}, {name: s, match: {path: /s}}"
    let found = try found("on_unknown: retry, response_timeout: 90s, unknown_retention: 5s", both)
      .filter { !$0.contains("shutdown_grace") }
    #expect(found.count == 2, "\(found)")
    for text in ["with on_unknown: retry, a lease of", "has no effect, because an unknown outcome is kept"] {
      #expect(found.contains { $0.contains("defaults.on_unknown: \(text)") }, "\(found)")
    }
  }

  @Test func `a fingerprint and a lease that routes inherit are warned of`() throws {
    let both = "{name: r, match: {path: /r}}, {name: s, match: {path: /s}}"
    let found = try found("fingerprint: {headers: [X-Kind, Date]}, lease: 999d", both)
    #expect(found.count == 2, "\(found)")
    for text in ["fingerprint: lists date", "lease: is 999d"] {
      #expect(found.contains { $0.contains("defaults.\(text)") }, "\(found)")
    }
  }
}
