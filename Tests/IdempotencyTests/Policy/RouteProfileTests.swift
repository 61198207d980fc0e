import Foundation
import Idempotency
import NIOCore
import Testing
import Wire

/// The presets of well-known APIs, and their error objects.
struct RouteProfileTests {
  private func policy(_ profile: RouteProfile) -> RoutePolicy {
    let upstream = UpstreamSettings(name: "b", address: .tcp(host: "h", port: 1))
    var policy = RoutePolicy(name: "r", match: RouteMatch(), upstream: upstream)
    policy.caller = CallerPolicy(parts: [.address])
    policy.recipe = Recipe(headers: ["x-a"])
    policy.adopt(profile)
    return policy
  }

  @Test func `each profile sets the members of its contract, and no others`() {
    #expect(policy(.ietf).mismatchStatus == 422)
    #expect(policy(.stripe).mismatchStatus == 400 && policy(.stripe).idempotency == .optional)
    #expect(policy(.stripe).endpoint == .route && policy(.stripe).released == .forget)
    for profile in RouteProfile.allCases where profile != .stripe {
      #expect(policy(profile).endpoint == .path && policy(profile).released == .keep)
    }
    #expect(policy(.paypal).key.from == [.header("paypal-request-id")])
    #expect(policy(.paypal).retention == .seconds(45 * 86400))
    #expect(policy(.square).key.from == [.json("/idempotency_key")])
    #expect(
      policy(.aip155).key.from == [
        .json("/request_id"), .query("request_id"), .json("/requestId"), .query("requestId"),
      ])
    #expect(policy(.aip155).key.format == .uuid && policy(.aip155).mismatchStatus == 409)
    #expect(policy(.wunderlist).key.from == [.header("x-client-request-id")])
    let adyen = policy(.adyen)
    #expect(adyen.key.from == [.header("idempotency-key")] && adyen.key.maxLength == 64)
    #expect(adyen.retention == .seconds(31 * 86400) && adyen.echoesKey && adyen.idempotency == .optional)
    #expect(policy(.acp).mismatchStatus == 422 && policy(.acp).echoesKey)
    #expect(policy(.acp).idempotency == .required && policy(.acp).key.maxLength == 255)
    let repeatable = policy(.repeatability)
    #expect(repeatable.key.from == [.header("repeatability-request-id")])
    #expect(repeatable.mismatchStatus == 400 && repeatable.idempotency == .optional)
    #expect(RouteProfile.allCases.filter(\.marksFirstResponses) == [.adyen, .acp])
    let webhook = policy(.webhook)
    #expect(webhook.key.from == [.json("/id")])
    #expect(webhook.caller?.isShared == true)
    #expect(webhook.recipe == Recipe(body: .none, headers: ["x-a"]))
    // A sender delivers again until it is told 2xx, so that nothing else may end its event.
    for status in 200..<600 {
      #expect(webhook.outcomes[status] == (status < 300 ? .final : .retry), "\(status)")
    }
    for profile in RouteProfile.allCases where profile != .webhook {
      #expect(policy(profile).outcomes == OutcomeTable())
      #expect(policy(profile).caller == CallerPolicy(parts: [.address]))
      #expect(policy(profile).recipe == Recipe(headers: ["x-a"]))
    }
  }

  private static func text(_ problem: Problem, _ format: ErrorFormat) -> String {
    String(buffer: problem.body(as: format))
  }

  @Test func `a mismatch is the error object of each API`() {
    let problem = Problem.payloadMismatch(status: 400)
    let detail = problem.detail
    #expect(
      Self.text(problem, .stripe)
        == #"{"error":{"code":"payload_mismatch","message":"\#(detail)","type":"idempotency_error"}}"# + "\n")
    #expect(
      Self.text(problem, .paypal)
        == #"{"name":"INVALID_REQUEST","message":"\#(detail)","#
        + #""details":[{"issue":"DUPLICATE_REQUEST_ID","description":"\#(detail)","location":"header"}]}"#
        + "\n")
    #expect(
      Self.text(problem, .square)
        == #"{"errors":[{"category":"INVALID_REQUEST_ERROR","code":"IDEMPOTENCY_KEY_REUSED","#
        + #""detail":"\#(detail)","field":"idempotency_key"}]}"# + "\n")
    #expect(
      Self.text(problem, .acp)
        == #"{"type":"invalid_request","code":"idempotency_conflict","message":"\#(detail)"}"# + "\n")
    #expect(
      Self.text(problem, .odata)
        == #"{"error":{"code":"payload_mismatch","message":"\#(detail)"}}"# + "\n")
    #expect(Self.text(problem, .adyen) == Self.text(problem, .problem))
    #expect(
      Self.text(.inFlight(retryAfter: 1500), .acp).hasPrefix(
        #"{"type":"invalid_request","code":"idempotency_in_flight""#))
    #expect(
      Self.text(.inFlight(retryAfter: 1500), .google).hasPrefix(
        #"{"error":{"code":409,"message":"Wait and send"#))
    #expect(
      Self.text(.inFlight(retryAfter: 1500), .google).hasSuffix(
        #""status":"ABORTED","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","domain":"semel","#
          + #""reason":"IN_FLIGHT"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"2s"}]}}"#
          + "\n"))
  }

  @Test func `a quota's refusal is the rate limit of each API`() {
    let problem = Problem.quotaExceeded(.inFlight)
    let detail = problem.detail
    #expect(
      Self.text(problem, .stripe)
        == #"{"error":{"code":"rate_limit","message":"\#(detail)","type":"invalid_request_error"}}"# + "\n")
    #expect(
      Self.text(problem, .paypal)
        == #"{"name":"RATE_LIMIT_REACHED","message":"\#(detail)","#
        + #""details":[{"issue":"QUOTA_EXCEEDED","description":"\#(detail)"}]}"# + "\n")
    #expect(
      Self.text(problem, .square)
        == #"{"errors":[{"category":"RATE_LIMIT_ERROR","code":"RATE_LIMITED","detail":"\#(detail)"}]}"#
        + "\n")
    #expect(
      Self.text(problem, .google)
        == #"{"error":{"code":429,"message":"\#(detail)","status":"RESOURCE_EXHAUSTED","#
        + #""details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","domain":"semel","#
        + #""reason":"QUOTA_EXCEEDED"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","#
        + #""retryDelay":"1s"}]}}"# + "\n")
  }

  @Test(arguments: ErrorFormat.allCases)
  func `a response that was not kept is pointed to in every form`(format: ErrorFormat) {
    let text = Self.text(.responseNotKept(status: 201, location: "/v1/orders/\"1\""), format)
    #expect(text.contains("201"))
    #expect(text.contains(#"/v1/orders/\"1\""#))
    #expect(
      !Self.text(.responseNotKept(status: 201, location: nil), format).localizedCaseInsensitiveContains(
        "location"))
  }

  @Test(arguments: ErrorFormat.allCases)
  func `every refusal is JSON in every form, with its advice on retries`(format: ErrorFormat) throws {
    for problem in ProblemTests.all {
      let body = Data(String(buffer: problem.body(as: format)).utf8)
      _ = try JSONSerialization.jsonObject(with: body)
      let fields = Dictionary(
        uniqueKeysWithValues: problem.fields(as: format).map { ("\($0.name)", $0.value) })
      #expect(fields["X-Should-Retry"] == "\(problem.isRetryable)")
      #expect(fields["Cache-Control"] == "no-store")
      #expect(
        fields["Content-Type"]
          == ([.problem, .adyen].contains(format) ? "application/problem+json" : "application/json"))
      #expect(fields["Transient-Error"] == (format == .adyen ? "\(problem.isRetryable)" : nil))
      #expect(fields["Stripe-Should-Retry"] == (format == .stripe ? "\(problem.isRetryable)" : nil))
    }
  }
}
