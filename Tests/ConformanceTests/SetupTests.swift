import Conformance
import Testing

/// Options that would falsify a check, and those that would be shown.
struct SetupTests {
  private func setup(_ headers: String..., other: String? = nil, key: String = "Idempotency-Key") throws
    -> Setup
  {
    var setup = Setup(
      endpoint: try #require(Endpoint("http://127.0.0.1/orders")), payloads: Payloads(Array("{}".utf8)))
    setup.headers = try headers.map { line in try #require(HeaderLine(line)) }
    setup.otherCaller = try other.map { line in try #require(HeaderLine(line)) }
    setup.keyHeader = key
    return setup
  }

  @Test(arguments: [
    "Idempotency-Key", "idempotency_key", "Content-Length", "Host", "Transfer-Encoding", "Connection",
    "Expect", "Upgrade",
  ])
  func `a field that the check makes itself is refused, without its value`(name: String) throws {
    let line = "\(name): secret"
    #expect(try setup("X-Tenant: t", line).fieldFault == "--header: the check makes the field \(name) itself")
    #expect(
      try setup(other: line).fieldFault == "--other-caller: the check makes the field \(name) itself")
  }

  @Test func `the key's field is the one that the options name`() throws {
    #expect(try setup("Idempotency-Key: x", key: "X-Request").fieldFault == nil)
    #expect(try setup("x-request: x", key: "X-Request").fieldFault?.contains("x-request") == true)
    #expect(try setup(key: "Host").fieldFault == "--key-header: Host is a field of every request")
  }

  @Test func `other fields are sent`() throws {
    let fine = try setup(
      "Authorization: Bearer alice", "Content-Type: application/json", "Content-Encoding: gzip",
      other: "Authorization: Bearer bob")
    #expect(fine.fieldFault == nil)
    #expect(try setup(other: "Content-Type: text/plain").fieldFault != nil)
  }

  @Test(arguments: [
    ("http://user:p4ssw0rd@a.example/x", "http://[redacted]@a.example/x has credentials"),
    ("https://user:p4/ssw0rd?@a.example/x", "https://[redacted]@a.example/x has credentials"),
    ("user:p4ssw0rd@a.example", "[redacted]@a.example is not an absolute URL of HTTP"),
    ("ftp://p4ssw0rd@a@a.example", "ftp://[redacted]@a.example is not an absolute URL of HTTP"),
    ("a.example", "a.example is not an absolute URL of HTTP"),
  ])
  func `a URL that is refused is shown without its password`(url: String, start: String) {
    #expect(Endpoint(url) == nil)
    let fault = Endpoint.fault(of: url)
    #expect(fault.hasPrefix(start) && !fault.contains("ssw0rd"), "\(fault)")
  }
}
