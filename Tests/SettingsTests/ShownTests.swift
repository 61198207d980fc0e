import Foundation
import Settings
import Testing
import Yams

/// The settings that `/v1/config` shows.
struct ShownTests {
  /// The paths of all members, with `[]` for the elements of a list.
  private func paths(_ value: Any, under path: String = "") -> Set<String> {
    if let members = value as? [String: Any] {
      return members.reduce(into: []) { paths, member in
        let path = path.isEmpty ? member.key : "\(path).\(member.key)"
        paths.formUnion([path] + self.paths(member.value, under: path))
      }
    }
    let items = value as? [Any] ?? []
    return items.reduce(into: []) { $0.formUnion(paths($1, under: path + "[]")) }
  }

  private func shown(_ text: String) throws -> [String: Any] {
    let json = try load(text).shownJSON
    return try #require(try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any], "\(json)")
  }

  @Test func `every member of the sample is shown, by its name`() throws {
    let written = paths(try #require(try Yams.load(yaml: Sample.text)))
    // `defaults` are shown in each route.
    let expected = written.filter { !$0.hasPrefix("defaults") }
    let missing = expected.subtracting(paths(try shown(Sample.text)))
    #expect(missing.isEmpty, "add to the `shown` of their settings: \(missing.sorted())")
  }

  @Test func `values are shown as a user would write them`() throws {
    let text = """
      listen: [{address: "[::1]:1", proxy_protocol: true}, {address: unix:/run/semel.sock, mode: "0600"}]
      admin: {address: 127.0.0.1:2, hosts: [semel.internal]}
      trusted_proxies: [10.0.0.0/8, 192.0.2.1, 2001:db8::/32, unix]
      upstreams: {a: {url: "https://[::1]:1", host: api.example:8}, b: {url: unix:/run/b}}
      store: {kind: redis, url: "redis://me:pass@h:1/2", timeout: 250ms, local_cache: 0B}
      routes:
        - name: r
          match: {methods: [POST], path: "/v1/a b/{id}", host: Api.Example}
          profile: stripe
          upstream: b
          key: {from: [header:X-Key, query:k, json:/a/b, form:f, [query:a, header:B], payload]}
          caller: {parts: [cookie:s, query:q, json:/a, client_certificate:san, address]}
          retention: 36h
          outcomes: {retry: [500, 4xx]}
          max_request_body: 1536KiB
      """
    let shown = try load(text).shownJSON
    for part in [
      #"{"address":"[::1]:1","proxy_protocol":true},{"address":"unix:/run/semel.sock","proxy_protocol":false,"#
        + #""mode":"0600"}"#,
      #""admin":{"address":"127.0.0.1:2","hosts":["semel.internal"],"ui":{"operate":false,"bodies":false}}"#,
      #""trusted_proxies":["10.0.0.0/8","192.0.2.1","2001:db8::/32","unix"]"#,
      #""a":{"url":"https://[::1]:1","host":"api.example:8","#,
      #""b":{"url":"unix:/run/b","host":"preserve","#,
      #""store":{"kind":"redis","url":"redis://h:1/2","username":"me","password":"(redacted)","replicas":0,"durable":"memory","failover_grace":"2s","timeout":"250ms","#,
      #""local_cache":"0B""#, #""path":"/v1/a b/{id}","host":"api.example""#, #""upstream":"b""#,
      #""from":["header:x-key","query:k","json:/a/b","form:f",["query:a","header:b"],"payload"]"#,
      #""profile":"stripe","idempotency":"optional""#,
      #""parts":["cookie:s","query:q","json:/a","client_certificate:san","address"]"#,
      #""retention":"36h","remember":"3d""#,
      #""outcomes":{"final":[],"retry":[500,"4xx"],"unknown":[]}"#, #""max_request_body":"1536KiB""#,
    ] {
      #expect(shown.contains(part), "\(part) in \(shown)")
    }
  }

  @Test func `of a query, only names and the placeholder of a request's id are shown`() throws {
    let path = "/r?id={request_id}&token=hunter1&hunter2&q=hunter3-{request_id}"
    let shown = try load(
      route("on_unknown: reconcile, reconcile: {path: \"\(path)\"}")
        + "jwt: {jwks_url: \"https://id/keys?apikey=hunter4&v=\"}\n"
    ).shownJSON
    for part in [
      #""path":"/r?id={request_id}&token=(redacted)&(redacted)&q=(redacted){request_id}""#,
      #""jwks_url":"https://id/keys?apikey=(redacted)&v=""#,
    ] {
      #expect(shown.contains(part), "\(part) in \(shown)")
    }
    #expect(!shown.contains("hunter"), "\(shown)")
  }

  @Test func `no secret is shown, printed or found by reflection`() throws {
    let settings = try load(
      """
      upstreams: {backend: {url: "http://127.0.0.1:9000"}}
      store: {kind: redis, url: "redis://me:hunter2@h:1/2"}
      tracing: {otlp: "https://collector:hunter3@127.0.0.1:4318/base/"}
      """)
    var dumped = ""
    dump(settings, to: &dumped)
    for text in [settings.shownJSON, dumped, "\(settings)", String(reflecting: settings)] {
      #expect(!text.contains("hunter"), "\(text)")
    }
    #expect(settings.shownJSON.contains(#""otlp":"https://127.0.0.1:4318/base","userinfo":"(redacted)""#))
    #expect(settings.tracing?.revealedURL == "https://collector:hunter3@127.0.0.1:4318/base")
  }
}
