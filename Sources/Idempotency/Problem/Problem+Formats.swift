import NIOCore
import Wire

/// Refusals in the forms of other APIs, whose clients look for their own error objects.
extension Problem {
  /// The document in a form.
  public func body(as format: ErrorFormat) -> ByteBuffer {
    switch format {
    case .problem, .adyen: body()
    case .acp: ByteBuffer(string: acp + "\n")
    case .odata: ByteBuffer(string: odata + "\n")
    case .stripe: ByteBuffer(string: stripe + "\n")
    case .paypal: ByteBuffer(string: paypal + "\n")
    case .square: ByteBuffer(string: square + "\n")
    case .google: ByteBuffer(string: google + "\n")
    }
  }

  /// The fields of the response besides its framing, for a document in a form.
  public func fields(as format: ErrorFormat) -> [(name: StaticString, value: String)] {
    guard format != .problem else { return fields }
    var fields = fields
    guard format != .adyen else {
      fields.append(("Transient-Error", isRetryable ? "true" : "false"))
      return fields
    }
    fields[0].value = "application/json"
    // Stripe's libraries obey this field alone.
    if format == .stripe { fields.append(("Stripe-Should-Retry", isRetryable ? "true" : "false")) }
    return fields
  }
}

extension Problem {
  /// The detail, and what is known of a response that was not kept. These forms have no members for it.
  private var message: String {
    guard let originalStatus else { return detail }
    let place = location.map { ", and its Location is \($0)" } ?? ""
    return "\(detail) The status of that response was \(originalStatus)\(place)."
  }

  /// https://docs.stripe.com/api/errors, https://docs.stripe.com/error-codes
  private var stripe: String {
    let type =
      switch code {
      case .payloadMismatch, .inFlight: "idempotency_error"
      // Stripe has no type for 429: its libraries go by the status and the code.
      case .quotaExceeded: "invalid_request_error"
      default: status < 500 ? "invalid_request_error" : "api_error"
      }
    let name =
      switch code {
      case .inFlight: "idempotency_key_in_use"
      case .quotaExceeded: "rate_limit"
      default: code.rawValue
      }
    return
      "{\"error\":{\"code\":\(name.jsonString),\"message\":\(message.jsonString),\"type\":\(type.jsonString)}}"
  }

  /// https://developer.paypal.com/api/rest/responses
  private var paypal: String {
    let name =
      switch status {
      case 401: "AUTHENTICATION_FAILURE"
      case 404: "RESOURCE_NOT_FOUND"
      case 409: "RESOURCE_CONFLICT"
      case 422: "UNPROCESSABLE_ENTITY"
      case 429: "RATE_LIMIT_REACHED"
      case 503: "SERVICE_UNAVAILABLE"
      default: status < 500 ? "INVALID_REQUEST" : "INTERNAL_SERVER_ERROR"
      }
    let issue =
      switch code {
      case .payloadMismatch: "DUPLICATE_REQUEST_ID"
      case .keyMissing: "PAYPAL_REQUEST_ID_REQUIRED"
      default: code.rawValue.uppercased()
      }
    // PayPal's libraries take a fault without a location for one of the body.
    let place = isOfKey ? ",\"location\":\"header\"" : ""
    return "{\"name\":\"\(name)\",\"message\":\(message.jsonString),"
      + "\"details\":[{\"issue\":\"\(issue)\",\"description\":\(message.jsonString)\(place)}]}"
  }

  /// https://developer.squareup.com/docs/build-basics/handling-errors
  private var square: String {
    let category =
      switch status {
      case 401: "AUTHENTICATION_ERROR"
      case 429: "RATE_LIMIT_ERROR"
      default: status < 500 ? "INVALID_REQUEST_ERROR" : "API_ERROR"
      }
    let field = isOfKey ? ",\"field\":\"idempotency_key\"" : ""
    return "{\"errors\":[{\"category\":\"\(category)\",\"code\":\"\(squareCode)\","
      + "\"detail\":\(message.jsonString)\(field)}]}"
  }

  /// https://github.com/agentic-commerce-protocol, rfcs/rfc.delegate_payment.md
  private var acp: String {
    let type =
      switch status {
      case 429: "rate_limit_exceeded"
      case 503: "service_unavailable"
      default: status < 500 ? "invalid_request" : "processing_error"
      }
    let name =
      switch code {
      case .keyMissing: "idempotency_key_required"
      case .payloadMismatch: "idempotency_conflict"
      case .inFlight: "idempotency_in_flight"
      default: code.rawValue
      }
    return
      "{\"type\":\(type.jsonString),\"code\":\(name.jsonString),\"message\":\(message.jsonString)}"
  }

  /// OData JSON Format 4.01, section 21.1, which Azure's APIs have, too.
  private var odata: String {
    "{\"error\":{\"code\":\(code.rawValue.jsonString),\"message\":\(message.jsonString)}}"
  }

  /// Whether the refusal is about the key.
  private var isOfKey: Bool {
    switch code {
    case .keyMissing, .keyInvalid, .payloadMismatch, .inFlight, .keyExpired: true
    default: false
    }
  }

  private var squareCode: String {
    switch code {
    case .payloadMismatch: return "IDEMPOTENCY_KEY_REUSED"
    case .keyMissing: return "MISSING_REQUIRED_PARAMETER"
    case .keyInvalid: return "INVALID_VALUE"
    default: break
    }
    switch status {
    case 401: return "UNAUTHORIZED"
    case 404: return "NOT_FOUND"
    case 408: return "REQUEST_TIMEOUT"
    case 409: return "CONFLICT"
    case 413: return "REQUEST_ENTITY_TOO_LARGE"
    case 429: return "RATE_LIMITED"
    case 501: return "NOT_IMPLEMENTED"
    case 502: return "BAD_GATEWAY"
    case 503: return "SERVICE_UNAVAILABLE"
    case 504: return "GATEWAY_TIMEOUT"
    default: return "BAD_REQUEST"
    }
  }

  /// https://google.aip.dev/193
  private var google: String {
    let info =
      "{\"@type\":\"type.googleapis.com/google.rpc.ErrorInfo\",\"domain\":\"semel\","
      + "\"reason\":\"\(code.rawValue.uppercased())\"}"
    let retry = retryAfter.map {
      ",{\"@type\":\"type.googleapis.com/google.rpc.RetryInfo\",\"retryDelay\":\"\($0)s\"}"
    }
    return "{\"error\":{\"code\":\(status),\"message\":\(message.jsonString),\"status\":\"\(googleStatus)\","
      + "\"details\":[\(info)\(retry ?? "")]}}"
  }

  private var googleStatus: String {
    switch code {
    case .callerUnknown: "UNAUTHENTICATED"
    case .payloadMismatch, .responseNotKept, .keyExpired: "ALREADY_EXISTS"
    case .inFlight: "ABORTED"
    case .outcomeUnknown: status == 409 ? "ABORTED" : "UNKNOWN"
    case .noRoute: "NOT_FOUND"
    case .requestTimeout: "DEADLINE_EXCEEDED"
    case .notImplemented: "UNIMPLEMENTED"
    case .upstreamUnreachable, .storeUnavailable, .storeUnreadable, .overloaded: "UNAVAILABLE"
    case .quotaExceeded: "RESOURCE_EXHAUSTED"
    case .badRequest, .keyMissing, .keyInvalid, .keyNotSupported, .requestTooLarge, .headerTooLarge:
      "INVALID_ARGUMENT"
    }
  }
}
