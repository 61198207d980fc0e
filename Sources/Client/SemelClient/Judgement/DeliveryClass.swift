/// The meaning of one delivery's end. Each calls for one behaviour.
public enum DeliveryClass: String, Hashable, Sendable, CaseIterable, Codable {
  /// The outcome: the operation was carried out.
  case success
  /// The outcome, or a refusal that stays: sending it again changes nothing.
  case permanent
  /// Refused for now, or failed in a way that a retry may mend.
  case temporary
  /// Another delivery of the same intent is running.
  case inFlight = "in_flight"
  /// The request was sent, and nobody knows what became of it.
  case unknown
  /// No byte of the request reached the server.
  case notSent = "not_sent"
  /// The server did not accept the credentials, and carried out nothing.
  case credentials
}

/// An exception from the table of classes for the routes of one API.
public struct ClassRule: Hashable, Sendable {
  /// The beginning of the path. The rules are asked in their order, and the first that fits counts.
  public var pathPrefix: String
  /// The status that the rule is about.
  public var status: Int
  /// The class in place of the table's.
  public var deliveryClass: DeliveryClass

  /// A rule for a status below a path.
  public init(pathPrefix: String = "/", status: Int, is deliveryClass: DeliveryClass) {
    self.pathPrefix = pathPrefix
    self.status = status
    self.deliveryClass = deliveryClass
  }
}
