import Idempotency
import NIOCore

@testable import Store

extension Target {
  private static let times: [Int64] = [.min, 0, 1_700_000_000_000, .max]

  /// Records and responses as Redis keeps them, read back.
  static func recordsFault(in bytes: [UInt8]) -> String? {
    _ = Recipe(text: String(decoding: bytes, as: UTF8.self))
    let response = RedisResponse.read(ByteBuffer(bytes: bytes))
    if let response {
      guard response.length == bytes.count else { return "a response of another length" }
      if case .plain(let response) = response { _ = response.location }
    }
    guard let record = bytes.withUnsafeBytes({ RedisRecord($0) }) else { return nil }
    for time in times {
      let now = StoreInstant(milliseconds: time)
      switch record.standing(now: now, response: response?.outcome) {
      case .inFlight(let left, _): if left.count <= 0 { return "in flight, with no lease left" }
      case .unknown(let age, _): if age.count < 0 { return "lost in the future" }
      case .completed(let completed): if completed.remaining.count <= 0 { return "completed, and expired" }
      case .absent, .released, .expired: break
      }
    }
    return nil
  }
}
