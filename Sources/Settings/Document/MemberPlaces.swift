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
    (
      "the top",
      names { document in
        var settings = Settings()
        settings.read(document)
      }
    ),
    ("listen[]", names { _ = ListenSettings.read($0) }),
    ("admin", names { _ = AdminSettings.read($0) }),
    ("upstreams.NAME", names { _ = UpstreamSettings.read($0, name: "") }),
    (
      "store",
      names { section in
        var store = StoreSettings()
        store.read(section)
      }
    ),
    (
      "limits",
      names { section in
        var limits = LimitSettings()
        limits.read(section)
      }
    ),
    (
      "log",
      names { section in
        var log = LogSettings()
        log.read(section)
      }
    ),
    ("tracing", names { _ = TracingSettings.read($0) }),
    ("jwt", names { _ = JWTSettings.read($0) }),
    (
      "a route",
      names { section in
        var draft = RouteDraft()
        draft.read(section)
      }
    ),
    (
      "a route's match",
      names { section in
        var match = RouteMatch()
        match.read(section)
      }
    ),
    (
      "a route's key",
      names { section in
        var key = KeyPolicy()
        key.read(section)
      }
    ),
  ]

  private static func names(_ read: (Section) -> Void) -> [String] {
    let reader = Reader(file: "", environment: [:])
    let section = Section(value: Value(reader: reader, node: Node(""), path: ""), members: [])
    read(section)
    return section.offered
  }
}
