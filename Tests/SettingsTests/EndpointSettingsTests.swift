import Idempotency
import Settings
import Testing
import Wire

/// `endpoint`, `encoded_slashes`, and what profile `stripe` sets of them.
struct EndpointSettingsTests {
  private func policy(_ members: String, defaults: String = "") throws -> RoutePolicy {
    try load(
      upstream
        + "defaults: {caller: {parts: [\"header:X-Account\"]}\(defaults)}\nroutes: [{name: r, \(members)}]\n"
    ).routes[0]
  }

  @Test func `an endpoint is a word or a section`() throws {
    for (text, scope, host) in [
      ("path", RoutePolicy.Endpoint.path, RoutePolicy.EndpointHost.own), ("route", .route, .own),
      ("{host: any}", .path, .any), ("{scope: route, host: any}", .route, .any),
      ("{scope: route}", .route, .own),
    ] {
      let policy = try policy("endpoint: \(text)")
      #expect(policy.endpoint == scope && policy.endpointHost == host, "\(text)")
    }
    // A section adds to that of the defaults, and a word takes its place.
    let section = try policy("endpoint: {scope: route}", defaults: ", endpoint: {host: any}")
    #expect(section.endpoint == .route && section.endpointHost == .any)
    let word = try policy("endpoint: route", defaults: ", endpoint: {host: any}")
    #expect(word.endpoint == .route && word.endpointHost == .own)
  }

  @Test(arguments: [
    ("path", #""endpoint":"path""#), ("{host: any}", #""endpoint":{"scope":"path","host":"any"}"#),
  ])
  func `an endpoint is shown as it would be written`(text: String, shown: String) throws {
    #expect(try load(route("endpoint: \(text)")).shownJSON.contains(shown))
  }

  @Test(arguments: [
    ("path", "{host: any}", ["routes[0].endpoint"]), ("{host: any}", "path", ["routes[0].endpoint"]),
    ("{host: any}", "{host: any}", []), ("route", "{scope: route}", []),
  ])
  func `a namespace remembers whether hosts share their keys`(
    before: String, after: String, members: [String]
  ) throws {
    let (old, new) = (try load(route("endpoint: \(before)")), try load(route("endpoint: \(after)")))
    let remembered = NamespaceRegister.judge(KnownConfiguration(old), in: nil).text
    let judgement = NamespaceRegister.judge(KnownConfiguration(new), in: remembered)
    #expect(judgement.members == members)
    // As versions did that knew no such member.
    if before == "path" { #expect(remembered?.contains("endpointHost") == false) }
  }

  private func warnings(_ members: String) throws -> [String] {
    try load(route(members)).ownWarnings.map(\.description).filter {
      $0.contains("endpoint") || $0.contains("encoded_slashes")
    }
  }

  @Test func `what costs money or has no effect is warned of`() throws {
    let hosts = try warnings("match: {host: \"*.shops.example\"}, endpoint: {host: any}")
    #expect(
      hosts.count == 1
        && hosts[0].contains("routes[0].endpoint: has host: any, so that all names of *.shops.example"))
    #expect(try warnings("match: {host: api.example}, endpoint: {host: any}").isEmpty)
    #expect(try warnings("match: {host: \"*.shops.example\"}, endpoint: route").isEmpty)
    let off = try load(upstream + "routes: [{name: r, idempotency: off, encoded_slashes: keep}]").warnings
      .map(\.description)
    #expect(off.count { $0.contains("routes[0].encoded_slashes: has no effect with idempotency: off") } == 1)
    #expect(try warnings("encoded_slashes: keep").isEmpty)
  }

  @Test func `encoded slashes are refused unless a protected route keeps them`() throws {
    #expect(try policy("").encodedSlashes == .refuse && policy("").pathReading == .normal)
    let kept = try policy("match: {path: /a}", defaults: ", encoded_slashes: keep")
    #expect(kept.keepsSlashes && kept.pathReading == .keepingSlashes)
    #expect(try !policy("idempotency: off", defaults: ", encoded_slashes: keep").keepsSlashes)
  }

  @Test func `the profile of Stripe gives way to a number of attempts, and to the route's own word`() throws {
    let plain = try policy("profile: stripe")
    #expect(plain.endpoint == .route && plain.released == .forget)
    #expect(try policy("profile: stripe, endpoint: path, released: keep").released == .keep)
    #expect(try policy("profile: stripe, max_attempts: 3").released == .keep)
    #expect(try policy("profile: stripe", defaults: ", max_attempts: 3").released == .keep)
    let written = issues(route("profile: stripe, released: forget, max_attempts: 3"))
    #expect(written.count == 1 && written[0].contains("combines max_attempts with released: forget"))
  }
}
