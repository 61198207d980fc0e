/// The treatment of requests by pages of other origins (Fetch standard, CORS). It only adds to what the backend allows.
public struct CORSPolicy: Hashable, Sendable {
  /// The origins whose pages may read Semel's own responses, as browsers send them in `Origin`. Without any, Semel only
  /// completes the backend's responses.
  public var origins: [String]
  /// Whether these pages may do so with credentials, such as cookies.
  public var credentials: Bool

  public init(origins: [String] = [], credentials: Bool = false) {
    self.origins = origins
    self.credentials = credentials
  }
}
