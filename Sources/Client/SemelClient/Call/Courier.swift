package import HTTPTypes

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The sender of single deliveries: puts the key and the credentials on a request, sends it, and judges the end.
///
/// A delivery that the server refuses for its credentials is sent again with new ones, under the same key, within the
/// same attempt.
package struct Courier: Sendable {
  /// The repetitions of one delivery for want of credentials, each of which finds a token that died on its way.
  private static let maxResends = CredentialJunction.maxRefreshes

  package let origin: Origin
  package let policy: Policy
  package let environment: ClientEnvironment
  private let transport: any Transport
  private let keeper: CredentialKeeper?
  private let classifier: Classifier

  package init(
    origin: Origin, transport: any Transport, policy: Policy, keeper: CredentialKeeper?,
    environment: ClientEnvironment
  ) {
    self.origin = origin
    self.transport = transport
    self.policy = policy
    self.environment = environment
    self.keeper = keeper
    classifier = Classifier(rules: policy.rules)
  }

  /// The reasons for which nothing was sent.
  package enum Refusal: Error, Hashable {
    /// The file of the body cannot be read: it is gone, or is not readable for now, as on a device that is locked.
    case body(String, isGone: Bool)
    case credentials(CredentialError)
  }

  /// Sends an intent once, and judges the end.
  package func deliver(_ intent: Intent) async throws(Refusal) -> Verdict {
    let body = try bytes(of: intent.request.body)
    var request = HTTPRequest(
      method: intent.request.method, scheme: origin.scheme, authority: origin.authority,
      path: intent.request.path,
      headerFields: intent.request.fields)
    for name in policy.keyFields { request.headerFields[name] = intent.key.rawValue }
    return try await send(request, body: body) { response in
      classifier.verdict(on: response, to: intent.request.path, now: environment.now())
    }
  }

  /// Sends a request with the credentials in use, and again with new ones if it is refused for them.
  package func send(
    _ request: HTTPRequest, body: [UInt8], judge: (Response) -> Verdict
  ) async throws(Refusal) -> Verdict {
    var credential = try await credentials { keeper async throws(CredentialError) in
      try await keeper.current()
    }
    var resends = 0
    while true {
      let verdict = await exchange(request.with(credential?.fields), body, judge)
      guard verdict.deliveryClass == .credentials, let refused = credential, resends < Self.maxResends else {
        return verdict
      }
      resends += 1
      credential = try await credentials { keeper async throws(CredentialError) in
        try await keeper.replacement(for: refused)
      }
    }
  }

  private func exchange(_ request: HTTPRequest, _ body: [UInt8], _ judge: (Response) -> Verdict) async
    -> Verdict
  {
    do {
      return judge(
        try await transport.send(
          request, body: body, timeout: policy.attemptTimeout, maxResponseBody: policy.maxResponseBody))
    } catch {
      return Verdict(error)
    }
  }

  private func credentials(
    _ ask: (CredentialKeeper) async throws(CredentialError) -> CredentialKeeper.Credential
  ) async throws(Refusal) -> CredentialKeeper.Credential? {
    guard let keeper else { return nil }
    do {
      return try await ask(keeper)
    } catch {
      throw .credentials(error)
    }
  }

  private func bytes(of body: IntentBody) throws(Refusal) -> [UInt8] {
    switch body {
    case .none: return []
    case .bytes(let bytes): return bytes
    case .file(let path):
      do {
        return [UInt8](try Data(contentsOf: URL(filePath: path)))
      } catch {
        throw .body(
          "The body's file cannot be read: \(error)",
          isGone: (error as? CocoaError)?.code == .fileReadNoSuchFile)
      }
    }
  }
}

extension HTTPRequest {
  /// The request with further fields in the place of its own of these names.
  fileprivate func with(_ fields: HTTPFields?) -> HTTPRequest {
    guard let fields else { return self }
    var request = self
    for field in fields { request.headerFields[values: field.name] = [] }
    request.headerFields.append(contentsOf: fields)
    return request
  }
}
