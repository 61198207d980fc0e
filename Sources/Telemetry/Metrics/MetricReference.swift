/// The reference of all metrics: a page that is made from their families, for whoever has no sources.
public enum MetricReference {
  /// The page, in Markdown.
  public static var page: String {
    let rows = MetricFamily.all.map { family in
      let cells = ["`\(family.name)`", family.kind.rawValue, begin(of: family), family.help]
      return "| " + cells.map { $0.replacing("|", with: "\\|") }.joined(separator: " | ") + " |"
    }
    let table = ["| metric | kind | from the start | |", "|---|---|---|---|"] + rows
    return introduction + "\n\n" + table.joined(separator: "\n") + "\n"
  }

  private static func begin(of family: MetricFamily) -> String {
    guard family.kind != .histogram else { return "none" }
    return switch family.initial {
    case .all: "all"
    case .only(let key, let value): "`\(key)=\"\(value)\"`"
    case .none: "none"
    }
  }

  private static let introduction = """
    # All metrics

    Every metric of `/metrics`, in its order. [Metrics and alerts](metrics.md) has them by the question that they answer,
    with their labels. The page is made from the program, and a test holds it to that.

    *From the start* are the series that are there with 0 before they have counted anything. `rate` and `increase` miss
    the first count of any other series: write `or vector(0)` beside it.
    """
}
