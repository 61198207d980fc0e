import NIOCore
import Wire

/// A browser's preflight (Fetch standard, CORS-preflight request): it announces a request that a page of another origin
/// wants to send, and is no such request itself.
public struct Preflight: Sendable {
  /// The method of the announced request.
  public let method: ByteBuffer
  /// The names of its fields as far as they need permission, in lower case.
  public let fields: [String]

  /// The fields that browsers set in preflights by themselves, in lower case.
  fileprivate static let browserFields: Set<String> = [
    "accept", "accept-encoding", "accept-language", "access-control-request-headers",
    "access-control-request-method", "cache-control", "origin", "pragma", "referer", "user-agent",
  ]

  /// The maximum size of the announcement in bytes. A request may have a hundred fields, most names are shorter than 20
  /// bytes, and no backend allows so many.
  private static let maxAnnounced = 2048

  /// `nil` if the request does not have the form of a preflight. No preflight overrides its method, and none announces
  /// more fields than a page sets. Fields with keys are for `RouteTable.preflight` to judge.
  init?(_ head: MessageHead) {
    guard head.method == .options, head.names.isDisjoint(with: .methodOverrides),
      case .once(let origin) = head.find("origin"), !origin.isEmpty,
      case .once(let method) = head.find("access-control-request-method"), !method.isEmpty
    else { return nil }
    var names: [String] = []
    var left = Self.maxAnnounced
    let isWhole = head.readList(of: FieldNameSet(.accessControlRequestHeaders)) { name in
      left -= name.count
      guard left >= 0, names.count < ListElements.maxElements else { return false }
      names.append(String(decoding: name, as: UTF8.self).lowercased())
      return true
    }
    guard isWhole else { return nil }
    self.method = head.slice(method)
    fields = names
  }

  /// Whether the announced request is a GET or a HEAD, the methods of Semel's own documents.
  var announcesReading: Bool {
    ["GET", "HEAD"].contains(String(buffer: method))
  }
}

extension KeySource {
  /// The names of the fields with the key or a part of it that no preflight has, in lower case. A field that browsers
  /// set counts only if it is the whole key.
  var fieldsOutsidePreflights: [String] {
    switch self {
    case .header(let name): [name]
    case .composite(let parts):
      parts.flatMap(\.fieldsOutsidePreflights).filter { !Preflight.browserFields.contains($0) }
    case .query, .json, .form, .payload: []
    }
  }

  /// Whether a request with a key in this source alone may have the form of a preflight, which is never protected. No
  /// preflight has a body, but a payload may be empty.
  public var fitsPreflight: Bool { self == .payload || !isInBody && fieldsOutsidePreflights.isEmpty }
}

extension RouteTable {
  /// The routes of a preflight.
  public struct PreflightChoice: Sendable {
    /// The route by which the preflight is passed through.
    public let route: Route?
    /// The route of the announced request.
    public let announced: Route?
  }

  /// Chooses the routes of a preflight. It goes to the upstream of the announced request, unless a route lists OPTIONS.
  public func choice(
    for preflight: Preflight, head: MessageHead, host: ByteBuffer, path: ByteBuffer
  ) -> PreflightChoice {
    let own = route(for: head, method: head.slice(head.methodRange), host: host, path: path)
    let announced = route(announcedBy: preflight, method: preflight.method, host: host, path: path)
    let isListed = own?.policy.match.methods.isEmpty == false
    return PreflightChoice(route: isListed ? own : announced ?? own, announced: announced)
  }
}

extension OutcomeInquiry {
  /// The response to the preflight of an inquiry, and the route that the inquiry is about; `nil` for any other
  /// preflight, and where that route lets no page read Semel's own responses.
  public static func response(
    to preflight: Preflight, head: MessageHead, target: RequestTarget, host: RequestHost?, routes: RouteTable
  ) -> (response: OwnResponse, route: Route)? {
    guard routes.listsOrigins, preflight.announcesReading,
      target.path.readableBytesView.elementsEqual(path.utf8),
      let route = route(
        head: head, query: target.query, host: host, routes: routes, preflight: preflight),
      route.policy.cors?.origins.isEmpty == false
    else { return nil }
    var fields: [(name: StaticString, value: String)] = [("Access-Control-Allow-Methods", "GET, HEAD")]
    // A browser needs no permission to send cookies.
    let names = Set(route.policy.identityHeaders + route.policy.match.headers.map(\.name)).subtracting([
      "cookie"
    ])
    if !names.isEmpty {
      fields.append(("Access-Control-Allow-Headers", names.sorted().joined(separator: ", ")))
    }
    return (OwnResponse(status: 204, fields: fields), route)
  }
}
