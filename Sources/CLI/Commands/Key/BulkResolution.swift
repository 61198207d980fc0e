import ArgumentParser
import Foundation

/// The resolution of many unknown outcomes as not applied: counted, confirmed, and then made one by one, each with its
/// own entry in the audit log.
struct BulkResolution {
  /// The maximum number of records that one command resolves.
  static let maxRecords = 1000

  /// The name of the route; `nil` for all.
  let route: String?
  /// The minimum time for which the outcome has been unknown.
  let seconds: Double
  let isConfirmed: Bool
  let call: AdminCall

  func run() throws {
    let unknown = try RecordList.all(state: "unknown", by: call).filter {
      $0.unknownForSeconds ?? 0 >= seconds
    }
    let wanted = unknown.filter { route == nil || $0.route == route }
    let unattributed = route == nil ? 0 : unknown.count { $0.route == nil }
    if unattributed > 0 {
      StandardError.print(
        "semel: \(unattributed) more are left, whose records do not name their route: see semel key list"
      )
    }
    guard !wanted.isEmpty else { return print("no unknown outcome is that old: nothing to resolve") }
    let chosen = wanted.prefix(Self.maxRecords)
    let oldest = chosen.compactMap(\.unknownForSeconds).max() ?? 0
    let noun = wanted.count == 1 ? "unknown outcome" : "unknown outcomes"
    print(
      "\(wanted.count) \(noun)\(route.map { " of route \($0)" } ?? ""), the oldest for "
        + "\(Table.age(oldest)): the next delivery of each key will run")
    if chosen.count < wanted.count { print("this command resolves the first \(chosen.count)") }
    guard isConfirmed || confirm(chosen.count) else {
      StandardError.print("semel: nothing was changed")
      throw ExitCode.failure
    }
    try resolve(chosen)
  }

  /// Asks for the number, which nobody types by accident.
  private func confirm(_ count: Int) -> Bool {
    print("type \(count) to resolve as not applied: ", terminator: "")
    fflush(nil)
    return readLine()?.trimmingCharacters(in: .whitespaces) == "\(count)"
  }

  private func resolve(_ records: ArraySlice<RecordList.Record>) throws {
    var (resolved, failed) = (0, 0)
    for record in records {
      do {
        _ = try call.send(
          "POST", "/v1/records/\(RecordSelection.escaped(record.id))/resolve",
          OutcomeStatement.Resolution(outcome: "not_applied"))
        resolved += 1
      } catch is ExitCode {
        // The reason is printed. The record has an outcome by now, or the store is away.
        failed += 1
      }
    }
    print("\(resolved) resolved" + (failed > 0 ? ", \(failed) not" : ""))
    if failed > 0 { throw ExitCode.failure }
  }
}
