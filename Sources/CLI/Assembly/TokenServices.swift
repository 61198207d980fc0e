import Calls
import Idempotency
import Logging
import Platform
import Settings
import Synchronization
import Telemetry
import Tokens

/// The verification of tokens. Keys and verified tokens outlast a reload that does not change where they come from.
final class TokenServices: Sendable {
  private struct Current {
    let settings: JWTSettings
    let claims: Set<String>
    let source: KeySetSource?
    let tokens: SignedTokens
  }

  private let current = Mutex<Current?>(nil)
  private let tally = TokenTally()
  private let logger: Logger

  init(logger: Logger) { self.logger = logger }

  var verifier: (any TokenVerifier)? { current.withLock { $0?.tokens } }

  /// Fetches the keys where that is due. Called every few seconds.
  func renew() { current.withLock { $0?.source }?.renew() }

  /// Takes settings into use. A file is read before this returns, a URL is fetched meanwhile: requests wait for it.
  func adopt(_ settings: Settings) async {
    guard let jwt = settings.jwt else { return current.withLock { $0 = nil } }
    let claims = Set(settings.routes.flatMap { $0.caller?.alternatives ?? [] }.compactMap(\.claim))
    let old = current.withLock { $0 }
    if let old, old.settings == jwt, old.claims == claims { return }
    let keys = keys(of: jwt, unless: old)
    var source: KeySetSource?
    if case .source(let own) = keys { source = own }
    let tokens = await SignedTokens(keys, rules: jwt.rules, claims: claims, tally: tally)
    source?.renew()
    if case .file = jwt.keys { await source?.settled() }
    current.withLock { $0 = Current(settings: jwt, claims: claims, source: source, tokens: tokens) }
  }

  /// The keys, with the same source as before if that has not changed.
  private func keys(of jwt: JWTSettings, unless old: Current?) -> SignedTokens.Keys {
    if let old, let source = old.source, old.settings.keys == jwt.keys { return .source(source) }
    switch jwt.keys {
    case .secret(_, let secret): return .secret(secret)
    case .unverified: return .unverified
    case .file(let path):
      return .source(
        KeySetSource(name: path, isFile: true, logger: logger) { () throws(KeySetFault) in
          try Self.read(path)
        })
    case .url(let url):
      return .source(
        KeySetSource(name: Self.shown(url), isFile: false, logger: logger) { () throws(KeySetFault) in
          try Self.fetch(url)
        })
    }
  }

  /// A URL as logs and pages show it: a query may hold a secret.
  static func shown(_ url: String) -> String {
    url.firstIndex(of: "?").map { "\(url[..<$0])?…" } ?? url
  }

  private static func read(_ path: String) throws(KeySetFault) -> [UInt8] {
    if let status = FileStatus(path: path), status.size > KeySetSource.maxBytes { throw .tooLarge }
    do throws(SecretFile.Fault) {
      return try SecretFile.content(of: path, maxBytes: KeySetSource.maxBytes, isReadAgain: true)
    } catch {
      throw KeySetFault("\(error)")
    }
  }

  private static func fetch(_ url: String) throws(KeySetFault) -> [UInt8] {
    var call = HTTPCall(url: url)
    call.fields = ["Accept: application/json"]
    // Requests whose key is unknown wait for it.
    call.timeoutMilliseconds = 5000
    call.maxBytes = KeySetSource.maxBytes
    call.keepsPart = true
    let response: HTTPCall.Response
    do throws(HTTPCall.Failure) { response = try call.send() } catch { throw KeySetFault("\(error)") }
    guard response.status == 200 else { throw KeySetFault("the response has status \(response.status)") }
    guard response.isWhole else { throw .tooLarge }
    return response.body
  }
}

extension TokenServices {
  /// The source of the keys and its state; none without such a source.
  var lines: [String] { current.withLock { $0?.source.map { [$0.line] } ?? [] } }

  var figures: [MetricFigure] {
    guard let current = current.withLock({ $0 }) else { return [] }
    var figures = [
      MetricFigure(.tokensVerified, tally.verifiedCount), MetricFigure(.tokensKnown, tally.hitCount),
      MetricFigure(.tokensCached, current.tokens.cachedCount),
    ]
    figures += TokenFault.allCases.map {
      MetricFigure(.tokensRefused, tally.refusedCount($0), ("reason", $0.label))
    }
    guard let source = current.source?.figures else { return figures }
    figures += [
      MetricFigure(.keySetFetches, source.fetches), MetricFigure(.keySetFailures, source.failures),
      MetricFigure(.keySetKeys, source.keys),
    ]
    if let age = source.age { figures.append(MetricFigure(.keySetAge, age)) }
    return figures
  }
}

extension CallerPart {
  fileprivate var claim: String? {
    if case .jwt(let claim, _) = self { claim } else { nil }
  }
}
