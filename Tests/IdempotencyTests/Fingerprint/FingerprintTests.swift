import Idempotency
import Testing

/// The parts of a fingerprint besides the body.
struct FingerprintTests {
  private func request(_ change: (inout Request) -> Void) -> Request {
    var request = Request("application/json", #"{"a":1}"#)
    change(&request)
    return request
  }

  @Test func `the same payload has the same fingerprint in every process`() {
    // Written down once: it is compared with those of running systems' records.
    #expect(request { _ in }.fingerprint(.one).digest.text == "CXt-t7A-Tyj27D-_qhoqH28EmwsVpkbOVSnPx2SNd90")
  }

  /// Written down once, by a sort that decoded both names at every comparison.
  @Test func `random payloads have the fingerprints that records hold`() {
    var payloads = RandomPayloads(seed: 34)
    var (seen, raw) = ([UInt8](), 0)
    for number in 0..<3000 {
      let request = payloads.next()
      let recipe =
        number % 4 == 0
        ? Recipe(version: .one, ignore: [.json("/a"), .json("/0/name"), .json("/b/a")]) : .one
      if number % 8 == 1, request.isFingerprintedRaw(.one) { raw += 1 }
      seen += Array(request.fingerprint(recipe).digest.text.utf8)
    }
    #expect(Digest256.sha256(of: seen).text == "3O3L0SvCRM3awfBC9KBFaeVxz7mSvwdtRkYA9alzCd8")
    #expect(raw < 200)
  }

  @Test func `method and path enter`() {
    let one = request { _ in }.fingerprint()
    #expect(request { $0.method = "PUT" }.fingerprint() != one)
    #expect(request { $0.path = "/v1/order" }.fingerprint() != one)
    #expect(request { ($0.method, $0.path) = ("POST/", "v1/orders") }.fingerprint() != one)
  }

  @Test(arguments: [
    (nil, ""), ("a=1&b=2", "b=2&a=1"), ("a=1&b=2", "&a=1&&b=2&"), ("%61=%7E", "a=~"), ("a=%2f", "a=%2F"),
    ("B=1&%61=2&%2b=3", "a=2&B=1&%2B=3"), ("%zz=1", "%zz=1"),
  ])
  func `equal queries are equal`(left: String?, right: String?) {
    #expect(request { $0.query = left }.fingerprint() == request { $0.query = right }.fingerprint())
  }

  @Test(arguments: [
    ("a=1", nil), ("a=1", "a=2"), ("a=1", "b=1"), ("a=1&a=2", "a=2&a=1"), ("a", "a="), ("a", nil),
    ("a=", nil), ("=", nil),
    ("a=+", "a=%20"), ("a=+", "a=%2B"), ("a=/", "a=%2F"), ("a=b&c", "a=b%26c"), ("a=1&b=2", "a=1%26b=2"),
    ("a==", "a="),
    ("A=1", "a=1"), ("a=1&b=2&a=0", "b=2&a=1&a=0"), ("a=%25", "a=%"), ("a=%2525", "a=%25"), ("ab=c", "a=bc"),
    ("a=1&b=2&a=0", "b=2&a=0&a=1"),
  ])
  func `different queries differ`(left: String?, right: String?) {
    #expect(request { $0.query = left }.fingerprint() != request { $0.query = right }.fingerprint())
  }

  @Test(arguments: [
    "application/json", "Application/JSON", "application/json; charset=utf-8",
    "application/json ;charset=utf-8",
    "application/json;",
  ])
  func `the media type enters without its parameters`(type: String) {
    #expect(request { $0.fields = [("content-type", type)] }.fingerprint() == request { _ in }.fingerprint())
  }

  @Test func `another media type differs`() {
    let types = [
      [], [""], ["application/json"], ["application/problem+json"], ["text/json"], ["text/plain"],
      ["application/xml"],
      ["application/json", "application/json"], ["application/json", ""],
    ]
    let fingerprints = types.map { types in
      request { $0.fields = types.map { ("Content-Type", $0) } }.fingerprint()
    }
    #expect(Set(fingerprints).count == types.count)
  }

  @Test func `only named fields enter`() {
    let recipe = Recipe(headers: ["x-tenant", "x-mode"])
    func with(_ fields: (String, String)...) -> Request { request { $0.fields += fields } }
    #expect(with(("X-Other", "1")).fingerprint() == request { _ in }.fingerprint())
    #expect(with(("X-Other", "1")).fingerprint(recipe) == request { _ in }.fingerprint(recipe))
    #expect(with(("x-TENANT", "1")).fingerprint(recipe) == with(("X-Tenant", "1")).fingerprint(recipe))
    let fingerprints = [
      with(), with(("X-Tenant", "")), with(("X-Tenant", "1")), with(("X-Tenant", "2")), with(("X-Mode", "1")),
      with(("X-Tenant", "1"), ("X-Mode", "1")), with(("X-Tenant", "11"), ("X-Mode", "")),
      with(("X-Tenant", "1"), ("X-Tenant", "1")), with(("X-Tenant", "1"), ("X-Tenant", "")),
    ].map { $0.fingerprint(recipe) }
    #expect(Set(fingerprints).count == fingerprints.count)
  }

  @Test func `recipes state how the body enters`() {
    let one = request { _ in }
    let spaced = request { $0.body = Array(#"{ "a": 1 }"#.utf8) }
    let other = request { $0.body = Array(#"{"a":2}"#.utf8) }
    #expect(one.fingerprint() == spaced.fingerprint())
    #expect(one.fingerprint() != other.fingerprint())
    let raw = Recipe(body: .raw)
    #expect(one.fingerprint(raw) != spaced.fingerprint(raw))
    #expect(one.fingerprint(raw) == one.fingerprint(raw))
    let none = Recipe(body: .none)
    #expect(one.fingerprint(none) == other.fingerprint(none))
    #expect(one.fingerprint(none) != request { $0.path = "/" }.fingerprint(none))
    let digests = [Recipe(), raw, none].map { one.fingerprint($0).digest }
    #expect(Set(digests).count == 3)
  }

  @Test func `by the first recipe a coded body counts as bytes`() {
    func coded(_ coding: String, _ body: String) -> Request {
      request { ($0.fields, $0.body) = ($0.fields + [("Content-Encoding", coding)], Array(body.utf8)) }
    }
    let plain = request { _ in }.fingerprint(.one)
    #expect(coded("identity", #"{ "a":1}"#).fingerprint(.one) == plain)
    #expect(coded("Identity", #"{"a":1}"#).fingerprint(.one) == plain)
    #expect(coded("gzip", #"{"a":1}"#).fingerprint(.one) != plain)
    #expect(coded("gzip", #"{"a":1}"#).fingerprint(.one) != coded("gzip", #"{ "a":1}"#).fingerprint(.one))
    #expect(coded("gzip", #"{"a":1}"#).fingerprint(.one) != coded("br", #"{"a":1}"#).fingerprint(.one))
    #expect(coded("gzip", #"{"a":1}"#).fingerprint(.one) == coded("GZIP", #"{"a":1}"#).fingerprint(.one))
    #expect(coded("identity, gzip", #"{ "a":1}"#).fingerprint(.one) != plain)
  }

  @Test func `a body of any length enters whole`() {
    var seen: Set<Digest256> = []
    // Around the size of the scratch buffer, and well above it.
    for length in Array(900...1100) + [4096, 100_000] {
      seen.insert(Request("text/plain", body: [UInt8](repeating: 0x61, count: length)).fingerprint().digest)
    }
    #expect(seen.count == 203)
  }
}
