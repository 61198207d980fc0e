/// Which series there are, who uses them, and which names are free.
struct SeriesTable {
  private struct Entry {
    let kind: SeriesKind
    let series: MetricSeries
    var users = 1
  }

  /// The series of one name.
  private struct Family {
    let kind: SeriesKind
    let family: MetricFamily
    var series = 0
  }

  private let mostSeries: Int
  private var entries: [SeriesID: Entry] = [:]
  /// Where the handler stands that somebody gives back.
  private var places: [ObjectIdentifier: SeriesID] = [:]
  private var families: [String: Family] = [:]
  /// Under which names samples stand on the page, or may come to stand.
  private var names = Set(MetricFamily.all.flatMap { $0.kind.sampleNames(of: $0.name) })

  init(mostSeries: Int) { self.mostSeries = mostSeries }

  /// The one that is there, or a new one, with one user more; `nil` where there is no room or the name is taken.
  mutating func series(_ kind: SeriesKind, _ id: SeriesID, label: String) -> MetricSeries? {
    if let entry = entries[id] {
      guard entry.kind == kind else { return nil }
      entries[id]?.users += 1
      return entry.series
    }
    guard entries.count < mostSeries, id.isShort, mayHave(kind, id.name, label: label) else { return nil }
    let series = MetricSeries(kind)
    entries[id] = Entry(kind: kind, series: series)
    places[ObjectIdentifier(series.handler)] = id
    families[id.name]?.series += 1
    return series
  }

  /// One user of a handler less. Nothing happens where it is not, or no longer, that of an entry.
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

  /// All of them, by their names and then by their labels.
  var inOrder: [(family: MetricFamily, labels: String, series: MetricSeries)] {
    entries.sorted { $0.key < $1.key }.compactMap { id, entry in
      families[id.name].map { ($0.family, id.labels, entry.series) }
    }
  }

  /// Whether a name may have series of a kind: it has some already, or nothing else stands under it.
  private mutating func mayHave(_ kind: SeriesKind, _ name: String, label: String) -> Bool {
    if let family = families[name] { return family.kind == kind }
    let samples = kind.family.sampleNames(of: name)
    guard names.isDisjoint(with: samples) else { return false }
    names.formUnion(samples)
    families[name] = Family(kind: kind, family: MetricFamily(kind.family, name, toldAs: label))
    return true
  }
}
