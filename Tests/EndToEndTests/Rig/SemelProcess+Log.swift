import Foundation
import TestSupport

extension SemelProcess {
  /// The log's entries with this message so far, as soon as there are `count`.
  func entries(
    _ message: String, atLeast count: Int, within span: Duration = .seconds(20)
  ) async throws -> [[String: String]] {
    try await process.state.until("\(count) lines with \(message)", within: span) {
      state -> [[String: String]]? in
      let entries = state.output.split(separator: UInt8(ascii: "\n")).compactMap {
        (try? JSONSerialization.jsonObject(with: Data($0)) as? [String: Any])
      }
      let found = entries.filter { $0["message"] as? String == message }
      return found.count >= count ? found.map { $0.mapValues { "\($0)" } } : nil
    }
  }

  /// The access log's entries so far, as soon as there are `count`.
  func requests(atLeast count: Int) async throws -> [[String: String]] {
    try await entries("request", atLeast: count)
  }
}
