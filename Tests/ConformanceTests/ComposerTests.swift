import Testing

@testable import Conformance

struct ComposerTests {
  private func composer(_ style: Composer.KeyStyle = .quoted) -> Composer {
    var setup = Setup(
      endpoint: Endpoint("http://127.0.0.1:9000/v1/orders?a=1")!,
      payloads: Payloads(Array(#"{"item":"book","amount":1}"#.utf8)))
    setup.headers = [
      HeaderLine(name: "Authorization", value: "Bearer alice"), HeaderLine(name: "X-Tenant", value: "t"),
    ]
    setup.otherCaller = HeaderLine(name: "authorization", value: "Bearer bob")
    return Composer(setup, style: style)
  }

  private func lines(_ delivery: Delivery, _ style: Composer.KeyStyle = .quoted) -> [String] {
    composer(style).request(delivery, keys: ["a": "key-1", "b": "key-2"]).lines
  }

  @Test func `a request is these bytes and no others`() {
    let request = composer().request(Delivery(), keys: ["a": "key-1"])
    #expect(
      String(decoding: request.bytes, as: UTF8.self) == """
        POST /v1/orders?a=1 HTTP/1.1\r
        Host: 127.0.0.1:9000\r
        Authorization: Bearer alice\r
        X-Tenant: t\r
        Idempotency-Key: "key-1"\r
        Content-Type: application/json\r
        Accept: */*\r
        User-Agent: semel-conformance\r
        Content-Length: 26\r
        \r
        {"item":"book","amount":1}
        """)
  }

  @Test func `keys are as the case has them`() {
    #expect(lines(Delivery(), .bare).contains("Idempotency-Key: key-1"))
    let two = lines(Delivery(.values(["\"{a}\"", "{b}\0"]))).filter { $0.hasPrefix("Idempotency-Key") }
    #expect(two == ["Idempotency-Key: \"key-1\"", "Idempotency-Key: key-2\0"])
    #expect(!lines(Delivery(.none)).contains { $0.hasPrefix("Idempotency-Key") })
    let integer = lines(Delivery(.values(["{a:integer}"]))).first { $0.hasPrefix("Idempotency-Key") }
    #expect(lines(Delivery(.text("{a}-{a:sibling}"))).contains("Idempotency-Key: \"key-1-key-0\""))
    #expect(lines(Delivery(.text("{b}")), .bare).contains("Idempotency-Key: key-2"))
    #expect(integer.map { $0.dropFirst(17).allSatisfy(\.isNumber) && $0.count <= 32 } == true)
  }

  @Test func `another caller has another field, and nobody has none`() {
    let other = lines(Delivery().with(\.caller, .other)).filter { $0.lowercased().hasPrefix("authorization") }
    #expect(other == ["authorization: Bearer bob"])
    let nobody = lines(Delivery().with(\.caller, .none))
    #expect(nobody.contains("X-Tenant: t") && !nobody.contains { $0.contains("Bearer") })
  }

  @Test func `other spellings mean the same`() {
    func body(_ payload: Delivery.Payload) -> String {
      String(decoding: composer().request(Delivery(.none, payload), keys: [:]).body, as: UTF8.self)
    }
    #expect(body(.rewritten(.spaced)) == "{ \"item\": \"book\", \"amount\": 1}\n")
    #expect(body(.rewritten(.reordered)) == #"{"amount":1,"item":"book"}"#)
    #expect(body(.rewritten(.renumbered)) == #"{"item":"book","amount":1.0}"#)
    #expect(body(.other) == #"{"item":"bool","amount":1}"#)
  }

  @Test func `multipart gets another boundary, in the body and in its type`() {
    var setup = composer().setup
    setup.payloads = Payloads(
      Array("--B\r\n\r\nx\r\n--B--".utf8), mediaType: "multipart/form-data; boundary=B")
    let request = Composer(setup, style: .quoted)
      .request(Delivery(.none, .rewritten(.rebounded)), keys: [:])
    #expect(request.lines.contains("Content-Type: multipart/form-data; boundary=B2"))
    #expect(String(decoding: request.body, as: UTF8.self) == "--B2\r\n\r\nx\r\n--B2--")
  }

  @Test func `gzip is a stored block with its sum`() {
    #expect(Gzip.checksum("123456789".utf8) == 0xCBF4_3926)
    #expect(
      Gzip.stored(Array("ab".utf8)) == [
        0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255, 1, 2, 0, 253, 255, 0x61, 0x62, 0x6D, 0x48, 0x83, 0x9E, 2, 0, 0,
        0,
      ])
  }

  @Test func `a chunked body has two chunks`() {
    let request = composer().request(Delivery().with(\.framing, .chunked), keys: [:])
    #expect(request.lines.contains("Transfer-Encoding: chunked"))
    #expect(!request.lines.contains { $0.hasPrefix("Content-Length") })
    #expect(
      String(decoding: request.body, as: UTF8.self)
        == "d\r\n{\"item\":\"book\r\nd\r\n\",\"amount\":1}\r\n0\r\n\r\n")
  }

  @Test func `targets differ by a slash or a parameter`() {
    func target(_ target: Delivery.Target) -> String {
      composer().request(Delivery().with(\.target, target), keys: [:]).target
    }
    #expect(target(.trailingSlash) == "/v1/orders/?a=1")
    #expect(target(.query("b=2")) == "/v1/orders?a=1&b=2")
  }

  @Test func `credentials go to no other host`() {
    let own = composer().get(Endpoint("http://127.0.0.1:9000/executed")!)
    let other = composer().get(Endpoint("http://127.0.0.1:9001/executed")!)
    #expect(own.lines.contains("Authorization: Bearer alice"))
    #expect(!other.lines.contains { $0.contains("Bearer") })
  }

  @Test func `fresh keys are UUIDs of version 4`() {
    #expect(FreshKeys.uuid(0, 0) == "00000000-0000-4000-8000-000000000000")
    #expect(FreshKeys.uuid(.max, .max) == "ffffffff-ffff-4fff-bfff-ffffffffffff")
    #expect(FreshKeys.make(["a"]) != FreshKeys.make(["a"]))
  }
}
