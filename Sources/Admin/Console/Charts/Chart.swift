import Foundation

/// Charts as SVG, made of numbers and of names that are escaped. Each has a name of its own on its page.
struct Chart {
  private static let (height, left, top, bottom) = (150.0, 44.0, 8.0, 20.0)

  /// Unique on the page; letters and digits.
  let name: String
  /// The width in units of the picture, of which letters have eleven.
  var width = 600.0

  /// Stacked columns: a sample a column, the oldest at the left.
  ///
  /// - Parameter span: The names of the time axis's two ends and its middle.
  func columns(_ samples: [[Int]], title: String, span: [String], unit: String) -> String {
    let highest = Self.ceiling(samples.map { $0.reduce(0, +) }.max() ?? 0)
    let plot = Self.height - Self.top - Self.bottom
    let step = (width - Self.left) / Double(max(samples.count, 1))
    var paths = Array(repeating: "", count: CountSeries.all.count)
    for (column, sample) in samples.enumerated() {
      var base = Self.height - Self.bottom
      for (index, count) in sample.enumerated() where count > 0 {
        let size = plot * Double(count) / Double(highest)
        base -= size
        paths[index] +=
          "M\(Self.number(Self.left + Double(column) * step + 0.5)) \(Self.number(base))"
          + "h\(Self.number(step - 1))v\(Self.number(size))h-\(Self.number(step - 1))z"
      }
    }
    return frame(Self.height, title, axes(highest, span, unit) + fills(paths))
  }

  /// One bar of the shares that the counts have.
  func share(_ counts: [Int], title: String) -> String {
    let sum = Double(max(counts.reduce(0, +), 1))
    var start = 0.0
    let paths = counts.map { count -> String in
      let size = width * Double(count) / sum
      defer { start += size }
      return count > 0
        ? "M\(Self.number(start)) 0h\(Self.number(max(size - 1, 0.5)))v20h-\(Self.number(max(size - 1, 0.5)))z"
        : ""
    }
    return frame(20, title, fills(paths))
  }

  /// The columns of a histogram, without axes: its table names the bounds.
  func histogram(_ counts: [Int], title: String) -> String {
    let (highest, step) = (Double(max(counts.max() ?? 0, 1)), 8.0)
    let path = counts.enumerated().filter { $0.element > 0 }.map { index, count in
      let size = max(1, 24 * Double(count) / highest)
      return "M\(Self.number(Double(index) * step)) \(Self.number(24 - size))h7v\(Self.number(size))h-7z"
    }.joined()
    let width = Double(counts.count) * step
    return
      "<svg viewBox=\"0 0 \(Int(width)) 25\" width=\"\(Int(width))\" height=\"25\" role=\"img\" aria-label=\""
      + HTMLText.escaped(title)
      + "\"><path class=\"s-bars\" d=\"\(path)\"/><path class=\"axis\" d=\"M0 24.5h\(Int(width))\"/></svg>"
  }

  /// The series with their colours, once a page.
  static var legend: String {
    let items = CountSeries.all.map { series in
      let key = "legend-\(series.key)"
      return "<li><svg viewBox=\"0 0 14 14\" aria-hidden=\"true\">" + hatch(key, series)
        + "<path class=\"s-\(series.key)\" d=\"M0 0h14v14h-14z\"/>"
        + (series.isHatched ? "<path fill=\"url(#\(key))\" d=\"M0 0h14v14h-14z\"/>" : "")
        + "</svg>\(series.name)</li>"
    }
    return "<ul class=\"legend\">\(items.joined())</ul>"
  }

  /// The numbers of a chart for those who do not see it, `fold` samples in a row.
  static func table(_ samples: [[Int]], fold: Int, label: (Int) -> String) -> String {
    let head = CountSeries.all.map { "<th class=\"num\">\($0.name)</th>" }.joined()
    let rows = stride(from: 0, to: samples.count, by: fold).enumerated().map { number, start in
      let sums = samples[start..<min(start + fold, samples.count)].reduce([0, 0, 0, 0, 0]) {
        zip($0, $1).map(+)
      }
      return "<tr><th scope=\"row\">\(label(number))</th>"
        + sums.map { "<td class=\"num\">\($0)</td>" }.joined() + "</tr>"
    }
    return
      "<details><summary>The numbers</summary><div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Table\"><table class=\"small\"><thead><tr><th>From</th>"
      + "\(head)</tr></thead><tbody>\(rows.joined())</tbody></table></div></details>"
  }

  private func axes(_ highest: Int, _ span: [String], _ unit: String) -> String {
    let floor = Self.height - Self.bottom
    let marks = [(0, floor), (highest / 2, (floor + Self.top) / 2), (highest, Self.top)]
    let lines = marks.map { value, y in
      "<path class=\"axis\" d=\"M\(Self.left) \(Self.number(y))h\(width - Self.left)\"/>"
        + "<text x=\"\(Self.left - 6)\" y=\"\(Self.number(y + 4))\" text-anchor=\"end\">\(value)</text>"
    }.joined()
    let ends = ["start", "middle", "end"]
    let times = span.enumerated().map { index, text in
      let x = Self.left + (width - Self.left) * Double(index) / Double(max(span.count - 1, 1))
      return
        "<text x=\"\(Self.number(x))\" y=\"\(Self.height - 4)\" text-anchor=\"\(ends[min(index, 2)])\">\(HTMLText.escaped(text))</text>"
    }.joined()
    return lines + times
      + "<text x=\"\(Self.left + 4)\" y=\"\(Self.top + 10)\">\(HTMLText.escaped(unit))</text>"
  }

  private func fills(_ paths: [String]) -> String {
    zip(CountSeries.all, paths).map { series, path in
      guard !path.isEmpty else { return "" }
      let key = "\(name)-\(series.key)"
      return "<path class=\"s-\(series.key)\" d=\"\(path)\"/>"
        + (series.isHatched ? Self.hatch(key, series) + "<path fill=\"url(#\(key))\" d=\"\(path)\"/>" : "")
    }.joined()
  }

  private static func hatch(_ key: String, _ series: CountSeries) -> String {
    guard series.isHatched else { return "" }
    let turn = series.key == "refused" ? "rotate(45)" : "rotate(-45)"
    return
      "<defs><pattern id=\"\(key)\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" patternTransform=\"\(turn)\">"
      + "<path class=\"hatch\" d=\"M0 0v5\"/></pattern></defs>"
  }

  private func frame(_ height: Double, _ title: String, _ inner: String) -> String {
    "<svg class=\"chart\" viewBox=\"0 0 \(Int(width)) \(Int(height))\" role=\"img\" aria-labelledby=\"\(name)-title\">"
      + "<title id=\"\(name)-title\">\(HTMLText.escaped(title))</title>\(inner)</svg>"
  }

  /// The next number with one digit and zeros, or half of one, from 2 on.
  static func ceiling(_ count: Int) -> Int {
    guard count > 2 else { return 2 }
    var unit = 1
    while unit * 10 < count { unit *= 10 }
    return [unit, 2 * unit, 4 * unit, 6 * unit, 8 * unit, 10 * unit].first { $0 >= count && $0 % 2 == 0 }
      ?? 10 * unit
  }

  private static func number(_ value: Double) -> String {
    let tenths = Int((value * 10).rounded())
    return tenths % 10 == 0 ? "\(tenths / 10)" : "\(Double(tenths) / 10)"
  }
}

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
