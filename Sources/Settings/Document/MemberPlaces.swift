import Idempotency

/// The sections that have a member of a name, for a member that is written in another one.
enum MemberPlaces {
  /// The sections that have the member; `nil` if none has.
  static func of(_ name: String) -> [String]? {
    let places = members.filter { $0.names.contains(name) }.map(\.place)
    return places.isEmpty ? nil : places
  }

  private static let members: [(place: String, names: [String])] = [
    ("the top", Settings.schema.names),
    ("listen[]", ListenSettings.schema.names),
    ("admin", AdminSettings.schema.names),
    ("upstreams.NAME", UpstreamSettings.schema.names),
    ("store", StoreSettings.schema.names),
    ("limits", LimitSettings.schema.names),
    ("log", LogSettings.schema.names),
    ("tracing", TracingSettings.schema.names),
    ("jwt", JWTSettings.schema.names),
    ("a route", RouteDraft.schema.names),
    ("a route's match", RouteMatch.schema.names),
    ("a route's key", KeyPolicy.schema.names),
  ]
}
