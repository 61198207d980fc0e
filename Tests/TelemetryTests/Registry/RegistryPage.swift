import Telemetry
import Testing

/// A page as tests read it.
struct RegistryPage {
  let text: String
  private let lines: [String]

  init(_ registry: MetricRegistry) async {
    text = await Metrics(loops: 0, registry: registry).page()
    lines = text.split(separator: "\n").map(String.init)
  }

  /// The metrics of libraries, without their HELP and TYPE lines.
  var samples: [String] {
    guard let last = lines.lastIndex(where: { $0.hasPrefix("semel_process_") }) else { return [] }
    return lines[(last + 1)...].filter { !$0.hasPrefix("#") }
  }

  var dropped: String? {
    lines.first { $0.hasPrefix("semel_metric_series_dropped_total ") }?.split(separator: " ").last.map(
      String.init)
  }

  /// Records what Prometheus would not take: a malformed line, or a sample or a family that is there twice.
  func expectIsValid(sourceLocation: SourceLocation = #_sourceLocation) {
    var seen: Set<String> = []
    for line in lines {
      guard !line.hasPrefix("# HELP "), !line.hasPrefix("# TYPE ") else {
        let heading = line.split(separator: " ").prefix(3).joined(separator: " ")
        #expect(seen.insert(heading).inserted, "twice: \(line)", sourceLocation: sourceLocation)
        continue
      }
      let sample = line.wholeMatch(
        of: /([a-zA-Z_:][\w:]*(\{([a-zA-Z_]\w*="([^"\\\n]|\\[\\"n])*",?)+\})?) (NaN|[+-]Inf|-?[\d.e+-]+)/)
      #expect(sample != nil, "malformed: \(line)", sourceLocation: sourceLocation)
      if let sample {
        #expect(seen.insert(String(sample.1)).inserted, "twice: \(line)", sourceLocation: sourceLocation)
      }
    }
  }
}
