/// A fault in a request that is refused before its key is considered.
public enum RequestFault: Hashable, Sendable, CaseIterable {
  /// The head or the framing violates the protocol, or can be read in two ways.
  case malformed
  /// The path contains an encoded slash, backslash or NUL, a raw backslash, a dot segment with parameters, or a percent
  /// sign that begins no encoded byte.
  case ambiguousPath
  /// The host is missing, is given twice or differently, or is none.
  case host
  /// The length of the body is malformed, or given twice.
  case bodyLength
  /// `Connection` names a field that enters the request's identity or fingerprint.
  case connectionNamesIdentity
  /// The method differs from a route's only in letter case.
  case methodCase
  /// A field or a parameter names another method, and it is uncertain which of them would run.
  case methodOverride
  /// The parameters of an inquiry for an outcome are missing, unknown or malformed.
  case inquiry
  /// The body of a batch has no items in their place.
  case batch
  /// A batch has too many items.
  case batchSize
}

/// A quota of one caller.
public enum Quota: Hashable, Sendable, CaseIterable { case inFlight, newKeys }

// Refusals caused by the request itself.
extension Problem {
  public static func badRequest(_ fault: RequestFault) -> Problem {
    let detail =
      switch fault {
      case .malformed:
        "Send a request that follows the protocol to the letter; this one is malformed or ambiguous."
      case .ambiguousPath:
        "Send the path without encoded slashes, backslashes and NUL bytes, without raw backslashes, without parameters on dot segments, and with two hexadecimal digits behind each percent sign."
      case .host:
        "Send one Host field with the name or the address of the host and, as needed, its port."
      case .bodyLength:
        "State the body's length once: by one Content-Length, or by Transfer-Encoding: chunked in HTTP/1.1."
      case .connectionNamesIdentity:
        "Do not name fields that identify the request, such as those of its key, its caller or its content type, in the Connection field."
      case .methodCase:
        "Send the method in capitals; methods are case-sensitive."
      case .methodOverride:
        "Send the method that is meant as the request's own, without a field or a parameter _method that names one; it would be uncertain which of them ran."
      case .batch:
        "Send JSON without a content coding, with at least one item in an array at the place that the API documents, and without duplicate member names."
      case .batchSize:
        "Send fewer items at once; keep the key of each."
      case .inquiry:
        "Send the parameters method and path and, as needed, key, attach and response, each once and percent-encoded."
      }
    return Problem(.badRequest, status: 400, detail: detail, isRetryable: false)
  }

  private static let unreadableBody =
    "Send the body with one plain Content-Type and without a content coding, JSON by the letter of RFC 8259 and at most 128 levels deep, and the parts of a form with plain heads; an idempotency key in it cannot be read otherwise."

  /// The request has no key, and its route requires one.
  ///
  /// - Parameters:
  ///   - policy: The rules for keys. The detail names their first source.
  ///   - isBodyUnreadable: Whether the body, which may contain a key, cannot be read.
  public static func keyMissing(_ policy: KeyPolicy, isBodyUnreadable: Bool = false) -> Problem {
    let place = policy.from.first?.place ?? "the request"
    return Problem(
      .keyMissing, status: 400,
      detail: isBodyUnreadable
        ? unreadableBody
        : "Put a unique key for this operation into \(place), and send the same key with every retry of it.",
      isRetryable: false)
  }

  /// An inquiry names no key, or the key's first place is the body, which an inquiry does not have.
  public static var keyMissingInInquiry: Problem {
    Problem(
      .keyMissing, status: 400,
      detail:
        "Give the key of the request where its head has it, or, where a body may have it, as the parameter key of this inquiry, percent-encoded and once for each part.",
      isRetryable: false)
  }

  /// The number of items without a key that a refusal names.
  private static let maxItemsNamed = 10

  /// Items of a batch have no key.
  ///
  /// - Parameters:
  ///   - items: Their indices, at least one.
  ///   - pointer: The place of the key in an item.
  public static func keyMissing(inItems items: [Int], at pointer: String) -> Problem {
    let named = items.prefix(maxItemsNamed).map(String.init).joined(separator: ", ")
    let more = items.count > maxItemsNamed ? " and \(items.count - maxItemsNamed) more" : ""
    let subject = items.count == 1 ? "item \(named) has none" : "items \(named)\(more) have none"
    return Problem(
      .keyMissing, status: 400,
      detail:
        "Put a unique key into the member \(pointer) of each item, and send the same key with every retry of the item; \(subject) (counted from 0).",
      isRetryable: false)
  }

  /// A key came with `unmatched_keys: refuse` on a route that protects nothing, or without a route.
  public static var keyNotSupported: Problem {
    Problem(
      .keyNotSupported, status: 400,
      detail:
        "Check the method and the path, or send the request without an idempotency key; a retry of it is not protected here.",
      isRetryable: false)
  }

  /// The request's key is not valid.
  ///
  /// - Parameters:
  ///   - policy: The rules that the key violates.
  ///   - item: The index of the batch's item that has the key; `nil` if it is the request's.
  public static func keyInvalid(
    _ fault: KeyFault, policy: KeyPolicy, inItem item: Int? = nil
  ) -> Problem {
    let detail =
      switch fault {
      case .repeated: "Send the idempotency key once; it stands in the request more than once."
      case .placeholder:
        "Give the operation a unique key of its own; this one names nothing, as a missing value or a template that was not filled in does."
      case .firstSent:
        "Send Repeatability-First-Sent once, with the date of the first delivery in every retry, such as Sun, 06 Nov 1994 08:49:37 GMT."
      case .malformedString:
        "Send the idempotency key bare, or as one whole quoted string with nothing before or behind it."
      case .comma: "Send one idempotency key without a comma, or put it in quotes."
      case .illegalByte:
        "Use only visible ASCII characters in the idempotency key, and spaces only within quotes."
      case .tooLong: "Use an idempotency key of at most \(policy.maxLength) characters."
      case .tooShort: "Use an idempotency key of at least \(policy.minLength) characters."
      case .notUUID: "Use a UUID as the idempotency key, such as a random one of version 4."
      case .malformedEncoding:
        "Percent-encode the idempotency key so that two hexadecimal digits follow every percent sign."
      case .wrongType: "Send the idempotency key as a JSON string or an integer."
      case .unreadableBody: unreadableBody
      case .hidden:
        "Separate the parameters of the query by & alone, send 256 of them at most, and write the idempotency key's name without spaces, plus signs or control characters around it."
      }
    let place = item.map { "; see item \($0) of the batch (counted from 0)." }
    return Problem(
      .keyInvalid, status: 400, detail: place.map { detail.dropLast() + $0 } ?? detail, isRetryable: false)
  }

  public static func callerUnknown(_ fault: CallerFault) -> Problem {
    let detail =
      switch fault {
      case .missing(let part):
        "Identify the caller by \(part.place), which this request lacks; keys are separate for each caller."
      case .repeated(let part): "Send \(part.place) once; this request has it more than once."
      case .unreadable(let part):
        "Send \(part.place) so that it can be read: percent-encoded in a query, as a string or an integer in JSON."
      case .unknownScheme:
        "Use credentials that stay the same when the request is retried, such as a bearer token; those of this Authorization scheme may change."
      case .otherScheme(let part):
        "Identify the caller by \(part.place); this request's credentials are of another scheme."
      case .token(let fault, let place): fault.detail(at: place)
      }
    let isRetryable = if case .token(.keysMissing, _) = fault { true } else { false }
    return Problem(
      .callerUnknown, status: 401, detail: detail, isRetryable: isRetryable,
      retryAfter: isRetryable ? TokenFault.retryAfter : nil, challenge: fault.challenge)
  }

  /// The caller has too many requests in progress, or uses new keys too fast. Nothing was sent.
  public static func quotaExceeded(_ quota: Quota, retryAfter: Milliseconds = defaultPause) -> Problem {
    let detail =
      switch quota {
      case .inFlight:
        "Send the same request with the same key again once others have ended; you have too many in progress, and this delivery was not executed."
      case .newKeys:
        "Send the same request with the same key again later; you use new keys too fast, and this delivery was not executed."
      }
    return Problem(
      .quotaExceeded, status: 429, detail: detail, isRetryable: true, retryAfter: retryAfter.retryAfterSeconds
    )
  }

  /// The request's body exceeds the limit.
  ///
  /// - Parameter limit: The maximum length in bytes.
  public static func requestTooLarge(limit: Int) -> Problem {
    Problem(
      .requestTooLarge, status: 413,
      detail: "Send a body of at most \(limit) bytes; this delivery was not executed.",
      isRetryable: false)
  }

  /// The body did not arrive within `body_timeout`. Nothing was claimed or sent.
  public static var requestTimeout: Problem {
    Problem(
      .requestTimeout, status: 408,
      detail:
        "Send the request again with the same key; it did not arrive in time and this delivery was not executed.",
      isRetryable: true)
  }

  public static var headerTooLarge: Problem {
    Problem(
      .headerTooLarge, status: 431,
      detail: "Send fewer or shorter header fields; this delivery was not executed.",
      isRetryable: false)
  }

  /// The request uses `Upgrade` or `CONNECT` where a whole exchange must be recorded.
  public static var notImplemented: Problem {
    Problem(
      .notImplemented, status: 501,
      detail: "Send the request without Upgrade, CONNECT, or a transfer coding besides chunked.",
      isRetryable: false)
  }

  /// The request uses gRPC, which reports its outcome in trailers after a status of 200, so that the status does not
  /// tell the class.
  public static var grpcNotProtected: Problem {
    Problem(
      .notImplemented, status: 501,
      detail: "Call gRPC methods on a route with idempotency: off; recorded outcomes are for plain HTTP.",
      isRetryable: false)
  }

  /// No route matches, and there are several upstreams to choose from.
  public static var noRoute: Problem {
    Problem(
      .noRoute, status: 404, detail: "Use a host and a path for which a route is configured.",
      isRetryable: false)
  }
}

extension TokenFault {
  /// The seconds after which keys that are missing may be there.
  fileprivate static let retryAfter: Int64 = 5

  fileprivate func detail(at place: TokenPlace) -> String {
    switch self {
    case .repeated where place == .authorization:
      "Send one Authorization field; this request has several."
    case .repeated: "Send \(place.description) once; this request has it more than once."
    case .otherScheme: "Send a bearer token in \(place.description); this one has another scheme."
    case .malformed: "Send a signed JSON Web Token in its compact form; this token cannot be read."
    case .untrusted: "Send a token that is signed with a key and an algorithm that are accepted here."
    case .expired: "Get a new token and send the request again with the same key; this token has expired."
    case .premature:
      "Send the request again with the same key once the token is valid; its time has not come."
    case .foreign: "Send a token of the issuer and for the audience that are accepted here."
    case .keysMissing:
      "Send the request again later with the same key; the keys that verify tokens are not available, and this delivery was not executed."
    }
  }
}

extension KeySource {
  /// The source's description in a sentence for a client. It contains words of the configuration only.
  fileprivate var place: String {
    switch self {
    case .header(let name): "the \(name) header field"
    case .query(let name): "the query parameter \(name)"
    case .json(let pointer): "the JSON body's member \(pointer)"
    case .form(let name): "the form field \(name)"
    case .payload: "the request"
    case .composite(let parts): parts.map(\.place).joined(separator: " and ")
    }
  }
}
