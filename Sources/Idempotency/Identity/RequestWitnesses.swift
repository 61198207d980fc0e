import NIOCore
import Wire

/// A request that is made only to compare routes.
struct RequestWitness {
  let method: [UInt8]
  let host: [UInt8]
  var path: [UInt8]
  let head: MessageHead
  let operation: GraphQLOperation

  /// The same request at another path.
  func at(_ path: [UInt8]) -> RequestWitness {
    var other = self
    other.path = path
    return other
  }

  /// Whether a table's only route matches the path as it is, without regard to its suffix.
  func isTaken(by table: RouteTable) -> Bool {
    method.withUnsafeBytes { method in
      host.withUnsafeBytes { host in
        path.withUnsafeBytes { path in
          table.fits(head, method: method, host: host, path: path, operation)
        }
      }
    }
  }

  func route(in table: RouteTable) -> Route? {
    method.withUnsafeBytes { method in
      host.withUnsafeBytes { host in
        path.withUnsafeBytes { path in
          table.route(for: head, method: method, host: host, path: path, operation: operation)
        }
      }
    }
  }
}

/// Makes the requests for a comparison of routes.
///
/// For two routes, these are the least specific requests that both match: an earlier route that takes such a request
/// takes all requests of its kind.
struct RequestWitnesses {
  private let methods: [[UInt8]]
  private let paths: WitnessPaths
  /// The kinds of operations between which any route distinguishes.
  private let operations: [GraphQLOperation]

  init(_ routes: [RoutePolicy]) {
    let listed = routes.flatMap(\.match.methods) + ["GET", "HEAD", "OPTIONS", "TRACE"]
    // The last element is a method that no route can name.
    methods = Set(listed).sorted().map { Array($0.utf8) } + [WitnessPaths.other]
    operations = routes.contains { $0.match.graphql != nil } ? [.mutation, .other] : [.mutation]
    paths = WitnessPaths(routes)
  }

  /// The requests that two routes may both match.
  func common(_ first: RoutePolicy, _ second: RoutePolicy?) -> [RequestWitness] {
    let paths = paths.common(first, second)
    let hosts = Set([first.match.host, second?.match.host].map(Self.host))
    let head = Self.head(Self.headers(first, second))
    return paths.flatMap { path in
      hosts.flatMap { host in
        methods.flatMap { method in
          operations.map {
            RequestWitness(method: method, host: host, path: path, head: head, operation: $0)
          }
        }
      }
    }
  }

  /// The properties of a second route that determine, besides its host, the requests in common with a first one.
  struct Kind: Hashable {
    /// The path's segments; `nil` for every path.
    private let segments: [PathPattern.Segment]?
    private let matchesRest: Bool
    private let spelling: RoutePolicy.Spelling
    private let headers: Set<RequiredHeader>

    init(_ second: RoutePolicy?) {
      segments = second?.match.path?.segments
      matchesRest = second?.match.path?.matchesRest ?? true
      spelling = second?.spelling ?? .lenient
      headers = Set(second?.match.headers ?? [])
    }
  }

  private static func headers(_ first: RoutePolicy, _ second: RoutePolicy?) -> Set<RequiredHeader> {
    Set(first.match.headers + (second?.match.headers ?? []))
  }

  private static func head(_ headers: Set<RequiredHeader>) -> MessageHead {
    var head = MessageHead(start: .status(0, reason: 0..<0))
    // The configuration accepts only fields that a head can hold, so `append` does not fail.
    for header in headers { try? head.append(name: header.name, value: header.value) }
    return head
  }

  /// A host that matches the pattern, and matches another route's pattern only if all such hosts do.
  static func host(_ pattern: String?) -> [UInt8] {
    guard let pattern else { return WitnessPaths.other }
    guard pattern.hasPrefix("*") else { return Array(pattern.utf8) }
    return WitnessPaths.other + Array(pattern.utf8.dropFirst())
  }
}
