import Wire

/// The reason for which a node of a cluster has not executed a command.
enum ClusterRefusal: Equatable {
  /// The slot belongs to another master.
  case moved(slot: Int, to: ServerAddress)
  /// The slot is on its way to another master, which already has the key.
  case ask(to: ServerAddress)
  /// Part of the command's keys have moved.
  case tryAgain
  /// The node reads its data from disk.
  case loading
  /// The node cannot serve the slot, or no node serves it.
  case down(String)

  /// Reads an error; `nil` if it is none of these.
  ///
  /// - Parameter node: The node that replied. A target without a host is on the same host.
  init?(_ text: String, from node: ServerAddress) {
    let words = text.split(separator: " ")
    switch words.first.map(String.init) ?? "" {
    case "MOVED":
      guard words.count == 3, let slot = Int(words[1]), 0..<SlotMap.slotCount ~= slot,
        let target = Self.address(words[2], node)
      else { return nil }
      self = .moved(slot: slot, to: target)
    case "ASK":
      guard words.count == 3, let target = Self.address(words[2], node) else { return nil }
      self = .ask(to: target)
    case "TRYAGAIN": self = .tryAgain
    case "LOADING", "MASTERDOWN": self = .loading
    case "CLUSTERDOWN": self = .down(text)
    default: return nil
    }
  }

  /// The word for the metrics page.
  var kind: Kind {
    switch self {
    case .moved: .moved
    case .ask: .ask
    case .tryAgain: .tryAgain
    case .loading: .loading
    case .down: .down
    }
  }

  enum Kind: String, CaseIterable {
    case moved, ask, loading, down
    case tryAgain = "try_again"
  }

  /// Reads `HOST:PORT`, where an IPv6 host has no brackets.
  private static func address(_ text: Substring, _ node: ServerAddress) -> ServerAddress? {
    guard let colon = text.lastIndex(of: ":"), let port = Int(text[colon...].dropFirst()), 1...65535 ~= port
    else { return nil }
    let named = String(text[..<colon])
    guard named.isEmpty || named == "?" else { return .tcp(host: named, port: port) }
    return node.host.map { .tcp(host: $0, port: port) }
  }
}
