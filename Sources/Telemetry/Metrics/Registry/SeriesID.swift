/// The identity of a series on the page: its family's name, and its labels as the page writes them.
struct SeriesID: Hashable, Comparable {
  /// The maximum length of name and labels together, in bytes: several times the need of a closed list of values.
  private static let maxBytes = 1024

  let name: String
  let labels: String

  var isShort: Bool { name.utf8.count + labels.utf8.count <= Self.maxBytes }

  /// Creates the identity of a label.
  ///
  /// - Parameters:
  ///   - label: The label, as swift-metrics passes it.
  ///   - dimensions: The dimensions, as swift-metrics passes them. Those with an empty value are omitted, which means
  ///     the same to Prometheus.
  init(_ kind: SeriesKind, _ label: String, _ dimensions: [(String, String)]) {
    let name = label.prometheusName
    self.name = name.hasSuffix(kind.suffix) ? name : name + kind.suffix
    var labels: [(key: String, value: String)] = []
    for (dimension, value) in dimensions where !value.isEmpty {
      var key = dimension.prometheusName
      // A histogram's buckets use the label `le`, and no label may appear twice.
      while labels.contains(where: { $0.key == key }) || kind.family == .histogram && key == "le" {
        key += "_"
      }
      labels.append((key, value))
    }
    // Prometheus gives their order no meaning.
    labels.sort { $0.key < $1.key }
    self.labels = MetricPage.text(of: labels)
  }

  static func < (left: SeriesID, right: SeriesID) -> Bool {
    (left.name, left.labels) < (right.name, right.labels)
  }
}

extension String {
  /// A valid name of a metric or of a label: `http.server.requests` becomes `http_server_requests`.
  ///
  /// Prometheus reserves two leading underscores for itself, and colons for recording rules.
  fileprivate var prometheusName: String {
    var name = utf8.map { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): byte
      case UInt8(ascii: "0")...UInt8(ascii: "9"): byte
      default: UInt8(ascii: "_")
      }
    }
    while name.starts(with: "__".utf8) { name.removeFirst() }
    if name.first.map({ $0 <= UInt8(ascii: "9") }) ?? true { name.insert(UInt8(ascii: "_"), at: 0) }
    return String(decoding: name, as: UTF8.self)
  }
}
