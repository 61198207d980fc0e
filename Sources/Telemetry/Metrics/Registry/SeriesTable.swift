/// The series that exist, the number of their users, and the names that are taken.
struct SeriesTable {
  private struct Entry {
    let kind: SeriesKind
    let series: MetricSeries
    var users = 1
  }

  private struct Family {
    let kind: SeriesKind
    let family: MetricFamily
    var series = 0
  }

  private let maxSeries: Int
  private var entries: [SeriesID: Entry] = [:]
  /// The identity of each handler's series.
  private var places: [ObjectIdentifier: SeriesID] = [:]
  private var families: [String: Family] = [:]
  private var names = Set(MetricFamily.all.flatMap { $0.kind.sampleNames(of: $0.name) })

  init(maxSeries: Int) { self.maxSeries = maxSeries }

  /// Adds a user to a series, which may be new; `nil` if there is no room or the name is taken.
  mutating func series(_ kind: SeriesKind, _ id: SeriesID, label: String) -> MetricSeries? {
    if let entry = entries[id] {
      guard entry.kind == kind else { return nil }
      entries[id]?.users += 1
      return entry.series
    }
    guard entries.count < maxSeries, id.isShort, mayHave(kind, id.name, label: label) else { return nil }
    let series = MetricSeries(kind)
    entries[id] = Entry(kind: kind, series: series)
    places[ObjectIdentifier(series.handler)] = id
    families[id.name]?.series += 1
    return series
  }

  mutating func release(_ handler: ObjectIdentifier) {
    guard let id = places[handler], let entry = entries[id] else { return }
    entries[id]?.users -= 1
    guard entry.users == 1 else { return }
    entries[id] = nil
    places[handler] = nil
    families[id.name]?.series -= 1
    guard let family = families[id.name], family.series == 0 else { return }
    families[id.name] = nil
    names.subtract(family.family.kind.sampleNames(of: id.name))
  }

  var inOrder: [(family: MetricFamily, labels: String, series: MetricSeries)] {
    entries.sorted { $0.key < $1.key }.compactMap { id, entry in
      families[id.name].map { ($0.family, id.labels, entry.series) }
    }
  }

  /// Whether a name may have series of a kind. Reserves its sample names.
  private mutating func mayHave(_ kind: SeriesKind, _ name: String, label: String) -> Bool {
    if let family = families[name] { return family.kind == kind }
    let samples = kind.family.sampleNames(of: name)
    guard names.isDisjoint(with: samples) else { return false }
    names.formUnion(samples)
    families[name] = Family(kind: kind, family: MetricFamily(kind.family, name, label: label))
    return true
  }
}

struct SeriesID: Hashable, Comparable {
  /// The maximum length of name and labels together.
  private static let maxBytes = 1024

  let name: String
  let labels: String

  var isShort: Bool { name.utf8.count + labels.utf8.count <= Self.maxBytes }

  /// Creates the identity of a label. Dimensions with an empty value are omitted, which is the same to Prometheus.
  init(_ kind: SeriesKind, _ label: String, _ dimensions: [(String, String)]) {
    let name = label.prometheusName
    self.name = name.hasSuffix(kind.suffix) ? name : name + kind.suffix
    var labels: [(key: String, value: String)] = []
    for (dimension, value) in dimensions where !value.isEmpty {
      var key = dimension.prometheusName
      // A histogram's buckets use `le`, and no label may appear twice.
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
  /// A valid name of a metric or of a label: `http.server.requests` becomes `http_server_requests`. Prometheus reserves
  /// two leading underscores, and colons.
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
