import ClientTestSupport
import Foundation
import HTTPTypes
@testable import SemelClient
import Testing

struct ClassifierTests {
  private func verdict(_ response: Response, rules: [ClassRule] = [], path: String = "/v1/orders") -> Verdict
  {
    Classifier(rules: rules).verdict(on: response, to: path, now: Date(timeIntervalSince1970: 0))
  }

  @Test(arguments: [
    (200, DeliveryClass.success), (201, .success), (404, .permanent), (500, .permanent), (503, .permanent),
  ])
  func `an executed request has its outcome, whatever its status`(status: Int, expected: DeliveryClass) {
    let verdict = verdict(.executed(status))
    #expect(verdict.deliveryClass == expected)
    #expect(verdict.isProven && !verdict.wasReplayed)
  }

  @Test func `a replay is the outcome, and says when the server forgets it`() {
    var response = Response.replayed(201)
    response.head.headerFields[.idempotencyExpires] = "Sun, 06 Nov 1994 08:49:37 GMT"
    let verdict = verdict(response)
    #expect(verdict.deliveryClass == .success && verdict.wasReplayed)
    #expect(verdict.expires == Date(timeIntervalSince1970: 784_111_777))
  }

  @Test(arguments: [
    (401, DeliveryClass.credentials), (407, .credentials), (403, .permanent), (308, .permanent),
    (503, .temporary),
    (429, .temporary),
  ])
  func `a response that was not stored was not executed`(status: Int, expected: DeliveryClass) {
    let verdict = verdict(Response(status, ["Idempotency-Status": "not-stored"]))
    #expect(verdict.deliveryClass == expected)
    #expect(!verdict.mayHaveRun)
  }

  @Test func `a response marked as unknown leaves the outcome open`() {
    let verdict = verdict(Response(502, ["Idempotency-Status": "unknown"]))
    #expect(verdict.deliveryClass == .unknown && verdict.mayHaveRun && verdict.isRetryable)
  }

  @Test func `a failure that Semel did not protect is not repeated`() {
    let verdict = verdict(Response(500, ["Idempotency-Status": "ignored"]))
    #expect(verdict.deliveryClass == .unknown && !verdict.isRetryable)
  }

  @Test(arguments: [
    (409, "in_flight", true, DeliveryClass.inFlight), (409, "outcome_unknown", true, .unknown),
    (409, "outcome_unknown", false, .unknown), (409, "key_expired", false, .unknown),
    (409, "payload_mismatch", false, .permanent), (401, "caller_unknown", false, .credentials),
    (401, "caller_unknown", true, .temporary), (502, "upstream_unreachable", true, .temporary),
    (503, "store_unavailable", true, .temporary), (503, "store_unreadable", true, .temporary),
    (503, "overloaded", true, .temporary), (429, "quota_exceeded", true, .temporary),
    (408, "request_timeout", true, .temporary), (400, "key_missing", false, .permanent),
    (413, "request_too_large", false, .permanent), (501, "not_implemented", false, .permanent),
  ])
  func `each problem of Semel has its class`(
    status: Int, code: String, isRetryable: Bool, expected: DeliveryClass
  ) {
    let verdict = verdict(.problem(status, code, isRetryable: isRetryable))
    #expect(verdict.deliveryClass == expected)
    if expected == .unknown { #expect(verdict.isRetryable == isRetryable) }
    #expect(verdict.isThrottled == (status == 429))
  }

  @Test func `a problem in the form of another API is found by its link`() {
    let link = #"</.well-known/idempotency#in_flight>; rel="describedby""#
    #expect(verdict(Response(409, ["Link": link, "X-Should-Retry": "true"])).deliveryClass == .inFlight)
  }

  @Test func `an outcome whose response was not kept is an outcome, with its status and place`() {
    let verdict = verdict(
      .problem(
        409, "response_not_kept", isRetryable: false,
        more: #","original_status":201,"location":"/v1/orders/7""#))
    #expect(verdict.deliveryClass == .success && verdict.isProven && verdict.wasReplayed)
    #expect(verdict.response?.status.code == 201)
    #expect(verdict.response?.fields[.location] == "/v1/orders/7")
  }

  @Test func `a replayed failure of Stripe is permanent`() {
    #expect(verdict(Response(500, ["Idempotent-Replayed": "true"])).deliveryClass == .permanent)
  }

  @Test(arguments: [
    (409, "true", DeliveryClass.inFlight), (500, "true", .temporary), (500, "false", .permanent),
    (400, "false", .permanent),
  ])
  func `Stripe's advice is obeyed`(status: Int, advice: String, expected: DeliveryClass) {
    #expect(verdict(Response(status, ["Stripe-Should-Retry": advice])).deliveryClass == expected)
  }

  @Test(arguments: [
    (200, DeliveryClass.success), (303, .success), (307, .permanent), (400, .permanent), (404, .permanent),
    (409, .permanent), (422, .permanent), (418, .permanent), (401, .credentials), (408, .temporary),
    (425, .temporary),
    (429, .temporary), (500, .temporary), (501, .temporary), (599, .temporary), (502, .unknown),
    (503, .unknown),
    (504, .unknown), (524, .unknown),
  ])
  func `a bare status has its class`(status: Int, expected: DeliveryClass) {
    let verdict = verdict(Response(status))
    #expect(verdict.deliveryClass == expected)
    #expect(verdict.mayHaveRun == (status >= 500))
  }

  @Test func `Retry-After makes a 503 certain and a 409 a delivery in flight`() {
    let unavailable = verdict(Response(503, ["Retry-After": "2"]))
    #expect(unavailable.deliveryClass == .temporary && !unavailable.mayHaveRun)
    #expect(unavailable.retryAfter == .seconds(2))
    #expect(verdict(Response(409, ["Retry-After": "1"])).deliveryClass == .inFlight)
  }

  @Test func `a rule of the application's comes before the table, on its routes alone`() {
    let rules = [ClassRule(pathPrefix: "/v1/", status: 404, is: .temporary)]
    #expect(verdict(.executed(404), rules: rules).deliveryClass == .temporary)
    #expect(verdict(.executed(404), rules: rules, path: "/v2/orders").deliveryClass == .permanent)
    #expect(verdict(.executed(410), rules: rules).deliveryClass == .permanent)
  }

  @Test func `a lost response may have run, and a request that was not sent has not`() {
    #expect(Verdict(.lost("")).mayHaveRun)
    #expect(!Verdict(TransportError.notSent("")).mayHaveRun)
  }
}
