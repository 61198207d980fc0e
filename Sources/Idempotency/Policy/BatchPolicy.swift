/// The places of a batch's items, of the key in each item, and of the results in the backend's response. Each item has
/// a record of its own.
public struct BatchPolicy: Hashable, Sendable {
  /// The default of `max_items`.
  public static let defaultMaxItems = 100

  /// JSON pointers (RFC 6901): to the array of items in the request, from an item to its key, and to the array of
  /// results in a response.
  public var items: String
  public var key: String
  public var results: String
  public var maxItems = defaultMaxItems

  public init(items: String, key: String, results: String) {
    self.items = items
    self.key = key
    self.results = results
  }

  /// The source of a key as it stands in a batch of one item.
  public var keySource: KeySource { .json("\(items)/0\(key)") }
}
