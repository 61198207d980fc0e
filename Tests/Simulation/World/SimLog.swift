import Logging

/// A node's log, in its world's journal.
struct SimLog: LogHandler {
  var metadata: Logger.Metadata = [:]
  var logLevel = Logger.Level.debug
  private let judge: Judge
  private let node: Int

  init(_ judge: Judge, node: Int) {
    self.judge = judge
    self.node = node
  }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    let all = metadata.merging(event.metadata ?? [:]) { $1 }
    let values = all.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(
      separator: " ")
    judge.log(
      "node \(node) logs \(event.level): \(event.message) \(values)",
      about: all["record"].map { "\($0)" })
  }
}
