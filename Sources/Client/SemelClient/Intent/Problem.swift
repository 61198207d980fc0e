import HTTPTypes

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A server's description of why it refused a request (RFC 9457), with the members that Semel adds.
public struct Problem: Hashable, Sendable, Codable, Error {
  /// Semel's name of the problem, such as `outcome_unknown`.
  public var code: String?
  /// A short name of the problem, for people.
  public var title: String?
  /// One sentence that says what to do.
  public var detail: String?
  /// Whether the same key may yet get a response.
  public var isRetryable: Bool?
  /// The status of the outcome, where its response was not kept (`response_not_kept`).
  public var originalStatus: Int?
  /// The place of the result, if the response was not kept.
  public var location: String?

  private enum CodingKeys: String, CodingKey {
    case code, title, detail, location
    case isRetryable = "retryable"
    case originalStatus = "original_status"
  }

  /// A problem of its members.
  public init(
    code: String? = nil, title: String? = nil, detail: String? = nil, isRetryable: Bool? = nil,
    originalStatus: Int? = nil, location: String? = nil
  ) {
    self.code = code
    self.title = title
    self.detail = detail
    self.isRetryable = isRetryable
    self.originalStatus = originalStatus
    self.location = location
  }

  /// The problem that a response describes. Where an API's errors have another form, Semel names the code in a link
  /// (`<…#CODE>; rel="describedby"`), which counts as well.
  init?(_ response: Response) {
    guard response.status.code >= 400 else { return nil }
    let type = response.fields[.contentType] ?? ""
    if type.hasPrefix("application/problem+json"),
      let problem = try? JSONDecoder().decode(Problem.self, from: Data(response.body))
    {
      self = problem
      return
    }
    guard let code = Self.linkedCode(response.fields[values: .known("Link")]) else { return nil }
    self.init(code: code)
  }

  private static func linkedCode(_ links: [String]) -> String? {
    let mark = "/.well-known/idempotency#"
    for link in links {
      guard let start = link.firstRange(of: mark)?.upperBound else { continue }
      let code = link[start...].prefix { $0 != ">" }
      if !code.isEmpty { return String(code) }
    }
    return nil
  }
}
