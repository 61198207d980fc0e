/// The series that exist, the number of their users, and the names that are taken.
struct SeriesTable {
  private struct Entry {
    let kind: SeriesKind
    let series: MetricSeries
    var users = 1
  }

  /// All series of one name.
  private struct Family {
    let kind: SeriesKind
    let family: MetricFamily
    var series = 0
  }

  private let maxSeries: Int
  private var entries: [SeriesID: Entry] = [:]
  /// The identity of each handler's series, needed when a user releases the handler.
  private var places: [ObjectIdentifier: SeriesID] = [:]
  private var families: [String: Family] = [:]
  /// The sample names that are taken: those on the page, and those that may still appear on it.
  private var names = Set(MetricFamily.all.flatMap { $0.kind.sampleNames(of: $0.name) })

  init(maxSeries: Int) { self.maxSeries = maxSeries }

  /// Returns the existing series, or a new one, and adds a user to it; `nil` if there is no room or the name is taken.
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

  /// Removes one user of a handler. Does nothing if the handler belongs to no entry, or no longer to one.
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

  /// All series, sorted by name and then by labels.
  var inOrder: [(family: MetricFamily, labels: String, series: MetricSeries)] {
    entries.sorted { $0.key < $1.key }.compactMap { id, entry in
      families[id.name].map { ($0.family, id.labels, entry.series) }
    }
  }

  /// Whether a name may have series of a kind: it already has some, or no other family uses its sample names. Reserves
  /// those names.
  private mutating func mayHave(_ kind: SeriesKind, _ name: String, label: String) -> Bool {
    if let family = families[name] { return family.kind == kind }
    let samples = kind.family.sampleNames(of: name)
    guard names.isDisjoint(with: samples) else { return false }
    names.formUnion(samples)
    families[name] = Family(kind: kind, family: MetricFamily(kind.family, name, label: label))
    return true
  }
}
