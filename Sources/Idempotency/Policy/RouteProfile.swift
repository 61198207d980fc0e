import Wire

/// A well-known contract of idempotency keys, as presets for the members of a route.
public enum RouteProfile: String, Sendable, CaseIterable {
  /// draft-ietf-httpapi-idempotency-key-header.
  case ietf
  /// Stripe's API: optional keys, and its error objects.
  case stripe
  /// PayPal's REST APIs: `PayPal-Request-Id`, replayed for 45 days, and its error objects.
  case paypal
  /// Square's APIs: a required member of the body, and its error list.
  case square
  /// Google's AIP-155: a request id in the body or the query, and errors as `google.rpc.Status`.
  case aip155
  /// Adyen's API: keys of up to 64 characters, remembered for 31 days and repeated in responses, and `Transient-Error`.
  case adyen
  /// The Agentic Commerce Protocol: responses repeat the key, and its flat error objects.
  case acp
  /// OASIS Repeatable Requests 1.0, as Azure's APIs have it: `Repeatability-Request-ID` with the date of the first
  /// delivery, `Repeatability-Result`, and error objects of OData.
  case repeatability
  /// Wunderlist's API: `X-Client-Request-ID`, and a repeated DELETE that finds nothing has succeeded.
  case wunderlist
  /// A receiver of events: the provider's event id is the key, and all senders are one caller.
  case webhook

  /// The form of the refusals that clients of this contract understand.
  public var errorFormat: ErrorFormat {
    switch self {
    case .ietf, .wunderlist, .webhook: .problem
    case .stripe: .stripe
    case .paypal: .paypal
    case .square: .square
    case .aip155: .google
    case .adyen: .adyen
    case .acp: .acp
    case .repeatability: .odata
    }
  }

  /// Whether clients look for `Idempotent-Replayed: false` in a response that is no replay.
  public var marksFirstResponses: Bool { self == .adyen || self == .acp }
}

/// The form in which a refusal states its reason. The status is the same in each.
public enum ErrorFormat: Sendable, CaseIterable {
  /// A problem document (RFC 9457).
  case problem
  case stripe, paypal, square, google, acp, odata
  /// A problem document, with Adyen's word on whether a retry may succeed.
  case adyen
}

extension RoutePolicy {
  /// The status of the refusal of a key that has expired. OASIS Repeatable Requests has 412 for what was first sent too
  /// long ago.
  public var expiredStatus: Int { profile == .repeatability ? 412 : 409 }

  /// The fields that the route states itself in the responses to keyed requests, in lower case.
  var statedFields: [String] {
    (echoesKey ? key.echoFields : []) + (profile == .repeatability ? ["repeatability-result"] : [])
  }

  /// Whether a response to a repeated DELETE means that an earlier attempt has deleted what the request names, so that
  /// the client gets 204.
  /// Only one that follows an unknown outcome can mean that: any other earlier attempt deleted nothing.
  func meansDeleted(status: Int) -> Bool { profile == .wunderlist && (status == 404 || status == 410) }

  /// Sets the members that a profile presets. All others stay, and each may be changed afterwards.
  ///
  /// For `webhook`, the caller is set as well; no other profile says who the caller is.
  public mutating func adopt(_ profile: RouteProfile) {
    self.profile = profile
    switch profile {
    case .ietf:
      key.from = [.header("idempotency-key")]
      mismatchStatus = 422
    case .stripe:
      key.from = [.header("idempotency-key")]
      idempotency = .optional
      mismatchStatus = 400
      // A key belongs to the account, and is refused at another path. What did not begin to execute is not kept.
      endpoint = .route
      released = .forget
    case .paypal:
      key.from = [.header("paypal-request-id")]
      idempotency = .optional
      mismatchStatus = 400
      retention = .seconds(45 * 24 * 3600)
    case .square:
      key.from = [.json("/idempotency_key")]
      mismatchStatus = 400
    case .aip155:
      key.from = [
        .json("/request_id"), .query("request_id"), .json("/requestId"), .query("requestId"),
      ]
      key.format = .uuid
      idempotency = .optional
      mismatchStatus = 409
    case .adyen, .acp, .repeatability: adoptFields(of: profile)
    case .wunderlist:
      key.from = [.header("x-client-request-id")]
    case .webhook:
      key.from = [.json("/id")]
      caller = CallerPolicy(parts: [])
      // A sender delivers its event again until it is told that it was taken.
      outcomes = OutcomeTable(retry: [.hundred(3), .hundred(4), .hundred(5)])
      // Providers put the time and number of the attempt into the body.
      recipe = Recipe(body: .none, headers: recipe.headers)
    }
  }

  /// Sets the members of a profile whose clients look for fields of their own in responses.
  private mutating func adoptFields(of profile: RouteProfile) {
    switch profile {
    case .adyen:
      key.from = [.header("idempotency-key")]
      key.maxLength = 64
      idempotency = .optional
      mismatchStatus = 422
      retention = .seconds(31 * 24 * 3600)
      echoesKey = true
    case .acp:
      key.from = [.header("idempotency-key")]
      mismatchStatus = 422
      echoesKey = true
    case .repeatability:
      key.from = [.header("repeatability-request-id")]
      idempotency = .optional
      mismatchStatus = 400
    default: invariantBroken("a profile without fields of its own")
    }
  }
}
