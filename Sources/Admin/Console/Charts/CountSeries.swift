/// The counts that the charts show, in the order of `RouteFigures.series`.
struct CountSeries: Sendable {
  /// The name of its colour in the style sheet.
  let key: String
  let name: String
  /// Whether it is hatched, so that it is told from its neighbours without colours.
  let isHatched: Bool

  static let all = [
    CountSeries(key: "executed", name: "executed", isHatched: false),
    CountSeries(key: "replayed", name: "replayed", isHatched: true),
    CountSeries(key: "waited", name: "waited, then replayed", isHatched: false),
    CountSeries(key: "refused", name: "refused", isHatched: true),
    CountSeries(key: "unknown", name: "outcome unknown", isHatched: false),
  ]
}
