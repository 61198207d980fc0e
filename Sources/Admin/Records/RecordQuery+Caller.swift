import HTTPTypes
import Idempotency

extension CallerPart {
  /// Whether the part is the token's issuer itself.
  fileprivate var isIssuer: Bool {
    if case .jwt("iss", _) = self { true } else { false }
  }
}

extension RecordQuery {
  /// The caller that the operator's values make by the route's policy, as those of a delivery would.
  func caller(_ policy: CallerPolicy) throws(AdminError) -> Caller {
    let values = try withIssuer(caller ?? [:], policy)
    do {
      return try policy.caller(values: values)
    } catch {
      throw AdminError(.badRequest, advice(on: error))
    }
  }

  /// The values with the issuer of the caller's token, which is a part of the caller. Without it they would be those of
  /// a token without `iss`, whose record no other token meets.
  private func withIssuer(
    _ values: [String: String], _ policy: CallerPolicy
  ) throws(AdminError) -> [String: String] {
    let stated = Set(values.filter { !$0.value.isEmpty }.keys.map(CallerPart.normalized))
    let claims = policy.alternatives.filter { $0.isOfToken && stated.contains($0.text) }
    guard !claims.isEmpty else { return values }
    var completed = values
    if let issuer = claims.first(where: \.isIssuer).flatMap({ completed[$0.text] }) {
      guard (completed["jwt_issuer"] ?? policy.issuer ?? issuer) == issuer else {
        throw AdminError(
          .badRequest,
          "no token has this caller: jwt:iss is another issuer than jwt_issuer, or than the route's")
      }
      completed["jwt_issuer"] = issuer
    }
    guard policy.issuer != nil || completed["jwt_issuer"] != nil else {
      throw AdminError(
        .badRequest,
        "route \(route) takes tokens of any issuer: give the caller's jwt_issuer, too, as the token's iss has it; an "
          + "empty one stands for a token without iss")
    }
    return completed
  }

  /// The sentence that says what to write.
  private func advice(on fault: CallerPolicy.ValueFault) -> String {
    switch fault {
    case .unknown(let part): "\(part) is no part of route \(route)'s caller"
    case .repeated(let part): "\(part) is given twice: give it once"
    case .otherIssuer(let own):
      "the tokens of route \(route) have the issuer \(own): take jwt_issuer out, or write that"
    case .refused(.missing(.header("authorization"))):
      "route \(route) needs the caller's header:authorization, with the credentials after its scheme: Bearer TOKEN"
    case .refused(.missing(.either(let parts))):
      "route \(route) needs one of the caller's \(parts.map(\.text).joined(separator: ", ")): give the first that its "
        + "requests have"
    case .refused(.missing(let part)): "route \(route) needs the caller's \(part.text)"
    case .refused(.unknownScheme):
      "route \(route) refuses the scheme of this header:authorization: write Bearer TOKEN, or another scheme that the "
        + "route knows"
    case .refused(.otherScheme(let part)): "no request has this value of \(part.text)"
    case .refused(.unreadable(let part)), .refused(.repeated(let part)):
      "no request has this value of \(part.text): \(Self.form(of: part))"
    case .refused(.token): "no request has this caller"
    }
  }

  /// The form of a part's values.
  private static func form(of part: CallerPart) -> String {
    switch part {
    case .address: "write an IP address without a port, such as 192.0.2.1 or 2001:db8::1"
    case .basicUser: "write the user name, without its password"
    case .signingKey: "write KEY/REGION/SERVICE, such as AKIDEXAMPLE/us-east-1/s3"
    case .header: "write the field's value, without line ends and other control characters"
    case .cookie: "write the cookie's value, without semicolons and control characters"
    case .clientCertificate(.subject): "write the certificate's subject"
    case .clientCertificate(.san):
      "write the certificate's names with their kind: uri:, dns: or email:"
    case .clientCertificate(.identity):
      "write the certificate's names with their kind (uri:, dns: or email:), or its subject after subject:"
    case .query, .json, .jwt, .either, .optional: "write it as it is, without encoding"
    }
  }
}
