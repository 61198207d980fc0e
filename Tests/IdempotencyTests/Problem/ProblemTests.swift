import Idempotency
import NIOCore
import Testing

struct ProblemTests {
  /// Every refusal that can be made, in one variant each.
  static let all = besidesTokens + ofTokens

  private static let ofTokens: [Problem] =
    [.callerUnknown(.missing(.jwt("sub")))] + TokenFault.allCases.map { .callerUnknown(.token($0)) }

  private static let besidesTokens: [Problem] =
    RequestFault.allCases.map { .badRequest($0) }
    + [
      .keyMissing(KeyPolicy()), .keyMissing(KeyPolicy(from: .query("key"))),
      .keyMissing(KeyPolicy(from: .json("/id"))),
      .keyMissing(KeyPolicy(from: .form("key"))),
      .keyMissing(inItems: [1], at: "/id"), .keyMissing(inItems: Array(0..<10), at: "/id"),
      .keyMissing(inItems: Array(3..<15), at: "/id"),
    ]
    + [.keyNotSupported] + KeyFault.allCases.map { .keyInvalid($0, policy: KeyPolicy()) }
    + [
      .missing(.header("authorization")), .missing(.header("x-user")), .missing(.cookie("session")),
      .missing(.address), .missing(.clientCertificate(.identity)), .missing(.clientCertificate(.subject)),
      .missing(.clientCertificate(.san)), .repeated(.header("authorization")), .repeated(.cookie("session")),
      .unknownScheme, .unreadable(.query("account")), .unreadable(.json("/account")),
    ].map { .callerUnknown($0) }
    + [409, 422, 400].map { .payloadMismatch(status: $0) }
    + [
      .inFlight(retryAfter: 1500), .outcomeUnknown(retryAfter: 30000), .outcomeUnknown(retryAfter: nil),
      .responseLost(.broken, retryAfter: 30000), .responseLost(.broken, retryAfter: nil),
      .responseLost(.timedOut, retryAfter: 30000), .responseLost(.timedOut, retryAfter: nil),
      .responseNotKept(status: 201, location: "/v1/orders/1"), .responseNotKept(status: 200, location: nil),
      .batchNotExecuted, .resultTooLarge(status: 201), .keyExpired,
      .requestTooLarge(limit: 1_048_576), .requestTimeout, .headerTooLarge, .notImplemented,
      .grpcNotProtected, .noRoute,
      .storeUnavailable(), .recordUnavailable(), .storeUnreadable(), .upstreamUnreachable, .refusedForNow,
      .overloaded(.busy), .overloaded(.draining),
      .quotaExceeded(.inFlight, retryAfter: 1000), .quotaExceeded(.newKeys, retryAfter: 2500),
      .firstSentTooLongAgo, .keyNotSupported.with(status: 501),
    ]

  /// The fields of a problem as lines.
  private static func lines(_ problem: Problem) -> [String] {
    problem.fields.map { "\($0.name): \($0.value)" }
  }

  @Test func `every problem document equals its golden text`() {
    let documents = Self.all.map { problem in
      Self.lines(problem).dropFirst(4).map { $0 + "\n" }.joined() + String(buffer: problem.body())
    }
    #expect(documents.joined() == goldenProblems)
  }

  @Test(arguments: all)
  func `every problem names its description, and is not cached`(problem: Problem) {
    #expect(
      Self.lines(problem).prefix(4) == [
        "Content-Type: application/problem+json", "Cache-Control: no-store",
        "Link: </.well-known/idempotency#\(problem.code.rawValue)>; rel=\"describedby\"",
        "X-Should-Retry: \(problem.isRetryable)",
      ])
  }

  @Test func `every code has a problem`() {
    #expect(Set(Self.all.map(\.code)) == Set(Problem.Code.allCases))
    #expect(Set(Problem.Code.allCases.map(\.title)).count == Problem.Code.allCases.count)
  }

  @Test(arguments: all)
  func `a detail is one sentence`(problem: Problem) {
    #expect(problem.detail.last == ".")
    #expect(!problem.detail.dropLast().contains(". "))
    #expect(problem.detail.first?.isUppercase == true)
  }

  @Test(arguments: all)
  func `only a retryable problem has Retry-After`(problem: Problem) {
    if let retryAfter = problem.retryAfter {
      #expect(problem.isRetryable)
      #expect(retryAfter >= 1)
    }
  }

  @Test func `strings of a backend are escaped`() {
    let problem = Problem.responseNotKept(status: 201, location: "/a\"b\\c\u{0}\u{1F}\n/ä")
    let body = String(buffer: problem.body())
    #expect(body.hasSuffix(#","original_status":201,"location":"/a\"b\\c\u0000\u001f\u000a/ä"}"# + "\n"))
  }
}
