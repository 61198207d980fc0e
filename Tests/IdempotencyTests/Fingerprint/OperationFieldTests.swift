import Idempotency
import Testing

/// The fields that hold the operation are part of each payload, whatever the route's settings are.
struct OperationFieldTests {
  private func request(_ fields: (String, String)...) -> Request {
    var request = Request("application/json", "{}")
    request.fields += fields
    return request
  }

  static let names = [
    "Destination", "Overwrite", "Depth", "X-Amz-Target", "X-Amz-Copy-Source", "X-Goog-Copy-Source",
    "SOAPAction", "Content-Range", "Upload-Offset", "Dropbox-API-Arg", "If-Match", "If-Unmodified-Since",
  ]

  @Test(arguments: names) func `a field that holds the operation is part of the payload`(name: String) {
    let one = request((name, "a"))
    #expect(one.fingerprint() == request((name.uppercased(), "a")).fingerprint())
    #expect(one.fingerprint() == request((name.lowercased(), "a"), ("X-Other", "1")).fingerprint())
    let different = [
      one, request((name, "b")), request((name, "")), request(), request((name, "a"), (name, "a")),
      request((name + "s", "a")),
    ]
    // The last one, like a request without any, has no such field.
    #expect(Set(different.map { $0.fingerprint() }).count == different.count - 1)
    #expect(one.fingerprint(.one) == request().fingerprint(.one))
    #expect(one.fingerprint(Recipe(body: .none)) != request().fingerprint(Recipe(body: .none)))
  }

  @Test func `each field is one of its own, in any order`() {
    let single = Self.names.map { request(($0, "a")).fingerprint() }
    #expect(Set(single).count == Self.names.count)
    #expect(
      request(("Depth", "1"), ("Overwrite", "T")).fingerprint()
        == request(("Overwrite", "T"), ("Depth", "1")).fingerprint())
    #expect(
      OperationFields.names(in: request(("if-match", "x"), ("DEPTH", "1")).head) == ["depth", "if-match"])
  }

  @Test func `a media type's version, profile and action are part of the payload`() {
    func typed(_ parameters: String) -> Fingerprint {
      Request("application/json" + parameters, "{}").fingerprint()
    }
    #expect(typed("; charset=utf-8; a=b") == typed(""))
    #expect(typed("; charset=utf-8; version=1") == typed(";Version=\"1\""))
    #expect(typed("; version=1; profile=p") == typed("; profile=\"p\";version=1"))
    let texts = [
      "", "version=1", "version=2", "profile=1", "action=1", "version=1;action=1", "version=1;version=1",
    ]
    #expect(Set(texts.map { typed(";" + $0) }).count == texts.count)
  }
}
