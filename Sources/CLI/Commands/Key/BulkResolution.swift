import ArgumentParser
import Calls
import Foundation

/// The resolution of many unknown outcomes as not applied: counted, confirmed, and then made one by one.
struct BulkResolution {
  static let maxRecords = 1000

  let route: String?
  let seconds: Double
  let isConfirmed: Bool
  let call: AdminCall

  func run() throws {
    let unknown = try RecordList.all(state: "unknown", by: call).filter {
      $0.unknownForSeconds ?? 0 >= seconds
    }
    let wanted = RecordList.of(route, among: unknown)
    let unattributed = route == nil ? 0 : unknown.count { $0.route == nil }
    if unattributed > 0 {
      StandardError.print(
        "semel: \(unattributed) more are left, whose records do not name their route: see semel key list"
      )
    }
    guard !wanted.isEmpty else {
      if let route { try call.checkRoute(route) }
      let place = route.map { " of route \($0)" } ?? ""
      return print("no unknown outcome\(place) is that old: nothing to resolve")
    }
    let chosen = wanted.prefix(Self.maxRecords)
    let oldest = chosen.compactMap(\.unknownForSeconds).max() ?? 0
    let noun = wanted.count == 1 ? "unknown outcome" : "unknown outcomes"
    print(
      "\(wanted.count) \(noun)\(route.map { " of route \($0)" } ?? ""), the oldest for "
        + "\(Table.age(oldest)): \(Self.effect(on: wanted))")
    if chosen.count < wanted.count { print("this command resolves the first \(chosen.count)") }
    guard isConfirmed || confirm(chosen.count) else {
      throw failed("nothing was changed")
    }
    try resolve(chosen)
  }

  /// The effect on the next deliveries. Those of a shadowed route are forwarded in any case.
  private static func effect(on records: [RecordList.Record]) -> String {
    let shadowed = records.count { $0.shadowed == true }
    if shadowed == records.count {
      return "of shadowed routes alone, whose deliveries are all forwarded in any case"
    }
    let rest =
      shadowed == 0
      ? "" : ", but for \(shadowed) of shadowed routes, whose deliveries are all forwarded in any case"
    return "the next delivery of each key will run\(rest)"
  }

  private func confirm(_ count: Int) -> Bool {
    print("type \(count) to resolve as not applied: ", terminator: "")
    fflush(nil)
    return readLine()?.trimmingCharacters(in: .whitespaces) == "\(count)"
  }

  private enum End {
    case resolved
    /// Another attempt has been made since the record was listed. Nobody has looked at that one, so it is left.
    case skipped
    /// The record has an outcome by now, or the store is away.
    case failed
  }

  private func resolve(_ records: ArraySlice<RecordList.Record>) throws {
    var (resolved, skipped, failed) = (0, 0, 0)
    for record in records {
      switch try resolve(record) {
      case .resolved: resolved += 1
      case .skipped: skipped += 1
      case .failed: failed += 1
      }
    }
    let left = [(skipped, "skipped"), (failed, "not")].filter { $0.0 > 0 }.map { ", \($0) \($1)" }
    print("\(resolved) resolved" + left.joined())
    if failed > 0 { throw ExitCode.failure }
  }

  /// Resolves the attempt that was listed, and prints the reason if it does not.
  private func resolve(_ record: RecordList.Record) throws -> End {
    let statement = OutcomeStatement.Resolution(outcome: "not_applied", attempt: record.attempt)
    let response: HTTPCall.Response
    do {
      response = try call.exchange(
        "POST", RecordSelection.place(of: record.id) + "/resolve", body: try AdminCall.json(of: statement))
    } catch is ExitCode {
      StandardError.print("semel: \(record.id) may not be resolved")
      return .failed
    }
    if 200..<300 ~= response.status {
      guard AdminCall.isRecord(Data(response.body), record.id) else { throw call.otherListener }
      return .resolved
    }
    guard let change = Self.change(of: record, by: response) else {
      call.printRefusal(response)
      StandardError.print("semel: \(record.id) may not be resolved")
      return .failed
    }
    StandardError.print("semel: \(record.id) is skipped: \(change)")
    return .skipped
  }

  /// The change of the record that a refusal shows; `nil` if its last attempt is the one that was listed.
  private static func change(of record: RecordList.Record, by response: HTTPCall.Response) -> String? {
    struct Refusal: Decodable {
      let state: String
      let attempt: Int
    }
    guard let refusal = try? JSONDecoder().decode(Refusal.self, from: Data(response.body)),
      let attempt = record.attempt, refusal.attempt != attempt
    else { return nil }
    return refusal.state == "unknown"
      ? "another attempt has ended unknown since the list was made"
      : "another attempt has been made since the list was made, and the record is \(refusal.state)"
  }
}
