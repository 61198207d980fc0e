extension Target {
  /// A row of the embedded store, a column a line: an entry that is the same when it is written and read again, or
  /// an error.
  static func rowsFault(in bytes: [UInt8]) -> String? {
    do {
      return try FuzzedTable.shared.fault(in: bytes.split(separator: 0x0A, omittingEmptySubsequences: false))
    } catch {
      return "the row cannot be written: \(error)"
    }
  }
}
