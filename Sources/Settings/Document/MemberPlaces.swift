import Idempotency
import Yams

/// The sections that have a member of a name, for a member that is written in another one.
///
/// The names are found by reading an empty mapping in each section's way, so that they are listed nowhere else.
enum MemberPlaces {
  /// The sections that have the member; `nil` if none has.
  static func of(_ name: String) -> [String]? {
    let places = members.filter { $0.names.contains(name) }.map(\.place)
    return places.isEmpty ? nil : places
  }

  private static let members: [(place: String, names: [String])] = [
    ("the top", names(Settings()) { $0.read($1) }),
    ("listen[]", names { _ = ListenSettings.read($0) }),
    ("admin", names { _ = AdminSettings.read($0) }),
    ("upstreams.NAME", names { _ = UpstreamSettings.read($0, name: "") }),
    ("store", names(StoreSettings()) { $0.read($1) }),
    ("limits", names(LimitSettings()) { $0.read($1) }),
    ("log", names(LogSettings()) { $0.read($1) }),
    ("tracing", names { _ = TracingSettings.read($0) }),
    ("jwt", names { _ = JWTSettings.read($0) }),
    ("a route", names(RouteDraft()) { $0.read($1) }),
    ("a route's match", names(RouteMatch()) { $0.read($1) }),
    ("a route's key", names(KeyPolicy()) { $0.read($1) }),
  ]

  private static func names<Part>(_ part: Part, _ read: (inout Part, Section) -> Void) -> [String] {
    names { section in
      var part = part
      read(&part, section)
    }
  }

  private static func names(_ read: (Section) -> Void) -> [String] {
    let reader = Reader(file: "", environment: [:])
    let section = Section(value: Value(reader: reader, node: Node(""), path: ""), members: [])
    read(section)
    return section.offered
  }
}
