import Idempotency
import NIOCore
import Testing

/// Callers by what stays the same in credentials that are otherwise replaced.
struct CredentialsTests {
  private func caller(_ part: CallerPart, _ values: String...) throws(Problem) -> Caller {
    var request = Request()
    request.fields = values.map { ("Authorization", $0) }
    return try CallerPolicy(parts: [part]).caller(head: request.head, peer: CallerPeer(address: nil))
  }

  private static let signature = "SignedHeaders=host;x-amz-date, Signature=fe5f"

  private static func signed(_ scope: String, _ rest: String = Self.signature) -> String {
    "AWS4-HMAC-SHA256 Credential=\(scope), \(rest)"
  }

  @Test func `the user of Basic credentials is the caller, whatever the password`() throws {
    let alice = try caller(.basicUser, "Basic YWxpY2U6b25l")
    #expect(try caller(.basicUser, "basic  YWxpY2U6dHdvOm1vcmU=") == alice)
    #expect(try caller(.basicUser, "Basic YWxpY2U6dHdvOm1vcmU") == alice)
    #expect(try caller(.basicUser, "Basic Ym9iOm9uZQ==") != alice)
    #expect(try CallerPolicy(parts: [.basicUser]).caller(values: ["basic:user": "alice"]) == alice)
    // Another kind of part with the same value.
    #expect(try CallerPolicy(parts: [.query("")]).caller(values: ["query:": "alice"]) != alice)
  }

  @Test(arguments: [
    "Basic", "Basic YWxpY2U", "Basic YWxp=2U6", "Basic a", "Basic YWxpY2U6-_", "Basic YWxpY2U6 x",
  ])
  func `Basic credentials that cannot be read are a fault`(value: String) {
    #expect(throws: Problem.callerUnknown(.unreadable(.basicUser))) { try caller(.basicUser, value) }
  }

  @Test func `a signature's key counts without its date`() throws {
    let one = try caller(.signingKey, Self.signed("AKID/20251130/us-east-1/s3/aws4_request"))
    let later =
      "aws4-hmac-sha256 SignedHeaders=host,Credential=AKID/20251201/us-east-1/s3/aws4_request,Signature=0"
    #expect(try caller(.signingKey, later) == one)
    for other in ["AKIE/20251130/us-east-1/s3", "AKID/20251130/eu-west-1/s3", "AKID/20251130/us-east-1/sqs"] {
      #expect(try caller(.signingKey, Self.signed(other + "/aws4_request")) != one)
    }
    let policy = CallerPolicy(parts: [.signingKey])
    #expect(try policy.caller(values: ["sigv4:access_key": "AKID/us-east-1/s3"]) == one)
    let slashes = try caller(.signingKey, Self.signed("a/b/20251130/r/s/aws4_request"))
    #expect(try policy.caller(values: ["sigv4:access_key": "a/b/r/s"]) == slashes)
    for value in ["AKID", "AKID/us-east-1", "/us-east-1/s3", "AKID//s3", "AKID/us-east-1/"] {
      #expect(throws: CallerPolicy.ValueFault.refused(.unreadable(.signingKey))) {
        try policy.caller(values: ["sigv4:access_key": value])
      }
    }
  }

  @Test(arguments: [
    "AWS4-HMAC-SHA256", "AWS4-HMAC-SHA256 Signature=0", signed("AKID/20251130/us-east-1/s3"),
    signed("/20251130/us-east-1/s3/aws4_request"), signed("AKID/2025113/us-east-1/s3/aws4_request"),
    signed("AKID/20251130//s3/aws4_request"), signed("AKID/20251130/us-east-1/s3/aws5_request"),
    signed(
      "AKID/20251130/us-east-1/s3/aws4_request", "Credential=AKIE/20251130/us-east-1/s3/aws4_request"),
  ])
  func `a signature whose key cannot be read is a fault`(value: String) {
    #expect(throws: Problem.callerUnknown(.unreadable(.signingKey))) { try caller(.signingKey, value) }
  }

  @Test(arguments: [CallerPart.basicUser, .signingKey])
  func `credentials that are missing, repeated or of another scheme name nobody`(part: CallerPart) throws {
    #expect(throws: Problem.callerUnknown(.missing(part))) { try caller(part) }
    #expect(throws: Problem.callerUnknown(.missing(part))) { try caller(part, "") }
    #expect(throws: Problem.callerUnknown(.repeated(part))) { try caller(part, "Basic YTpi", "Basic YTpi") }
    for value in ["Bearer a", "AWS4-ECDSA-P256-SHA256 Credential=a", "a-bare-token"] {
      #expect(throws: Problem.callerUnknown(.otherScheme(part))) { try caller(part, value) }
    }
    #expect(throws: Problem.callerUnknown(.missing(.basicUser))) { try caller(.basicUser, "Basic OnBhc3M=") }
    #expect(CallerPolicy(parts: [part]).provesNothing)
    #expect(!CallerPolicy(parts: [part, .clientCertificate(.identity)]).provesNothing)
  }

  @Test func `credentials of another scheme are those of a later alternative`() throws {
    let policy = CallerPart.either([.basicUser, .signingKey])
    let key = Self.signed("AKID/20251130/us-east-1/s3/aws4_request")
    #expect(try caller(policy, key) == caller(.signingKey, key))
    #expect(try caller(policy, "Basic YTpi") == caller(.basicUser, "Basic YTpi"))
    #expect(throws: Problem.callerUnknown(.unreadable(.basicUser))) { try caller(policy, "Basic a") }
    #expect(throws: Problem.callerUnknown(.otherScheme(.signingKey))) { try caller(policy, "Bearer a") }
  }

  @Test(arguments: [
    ("Bearer a.b.c", BearerToken.found(Array("a.b.c".utf8))), ("DPoP a.b.c", .found(Array("a.b.c".utf8))),
    ("dpop  a.b.c", .found(Array("a.b.c".utf8))), ("DPoP", .refused(.malformed)),
    ("DPoPx a.b.c", .refused(.otherScheme)), ("Basic a", .refused(.otherScheme)),
  ])
  func `a token comes with either of two schemes`(value: String, token: BearerToken) {
    #expect(Request(("Authorization", value)).head.bearerToken == token)
  }
}
