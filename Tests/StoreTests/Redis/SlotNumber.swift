import Idempotency

@testable import Store

/// The slots of records, for suites that see the store's public part alone.
enum SlotNumber {
  static func of(_ id: RecordID) -> Int { SlotMap.slot(of: id) }
  static func of(key: String) -> Int { SlotMap.slot(of: key) }

  /// A random id whose slot lies in the range.
  static func id(in range: ClosedRange<Int>) -> RecordID {
    while true {
      let id = Samples.id()
      if range.contains(of(id)) { return id }
    }
  }
}
