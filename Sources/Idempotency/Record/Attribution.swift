/// The origin of a record's latest attempt, by which operators find the record: route, key, caller and node.
///
/// It decides nothing: a record without it, or with one that cannot be read, is as good as any other. Key and caller
/// are the digests that the log shows, never values.
///
/// It is a class, because every step of a claim hands it on, and a copy of its texts would count four references.
public final class Attribution: Sendable, Equatable {
  /// The maximum length of a node's name, in bytes.
  static let maxNodeLength = 24

  /// The name of the route.
  public let route: String
  /// The digest of the key by the secret of all nodes; `nil` if it was not made.
  public let keyDigest: String?
  public let callerDigest: String?
  /// The name of the node that has made the attempt, as `nodeName` returns it.
  public let node: String
  /// The way in which the attempt's outcome was lost, as far as its owner has stated it.
  public let cause: LossCause?

  public init(
    route: String, keyDigest: String? = nil, callerDigest: String? = nil, node: String,
    cause: LossCause? = nil
  ) {
    self.route = route
    self.keyDigest = keyDigest
    self.callerDigest = callerDigest
    self.node = node
    self.cause = cause
  }

  public static func == (left: Attribution, right: Attribution) -> Bool {
    left === right
      || (left.route == right.route && left.keyDigest == right.keyDigest
        && left.callerDigest == right.callerDigest && left.node == right.node && left.cause == right.cause)
  }

  /// A copy that states how the attempt's outcome was lost.
  func lost(because cause: LossCause?) -> Attribution {
    Attribution(route: route, keyDigest: keyDigest, callerDigest: callerDigest, node: node, cause: cause)
  }

  /// The name of a node as records have it: letters, digits, dots, hyphens and underscores. A long name is cut to its
  /// end, in which the replicas of a deployment differ.
  public static func nodeName(_ host: String) -> String {
    let legal = host.utf8.map { byte in
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F: byte
      default: UInt8(ascii: "_")
      }
    }
    return String(decoding: legal.suffix(maxNodeLength), as: UTF8.self)
  }
}

extension Attribution {
  /// The text in a store: `ROUTE,KEY,CALLER,NODE[,CAUSE]`, where an unknown digest is empty. No part contains a space
  /// or a comma.
  public var text: String {
    "\(route),\(keyDigest ?? ""),\(callerDigest ?? ""),\(node)" + (cause.map { ",\($0.rawValue)" } ?? "")
  }

  /// Parses a text; `nil` if it is none. A cause that this version does not know is left out, and so are parts that a
  /// later version has added.
  public convenience init?(text: String) {
    let parts = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    guard parts.count >= 4, !parts[0].isEmpty else { return nil }
    self.init(
      route: parts[0], keyDigest: parts[1].isEmpty ? nil : parts[1],
      callerDigest: parts[2].isEmpty ? nil : parts[2], node: parts[3],
      cause: parts.count > 4 ? LossCause(rawValue: parts[4]) : nil)
  }
}

/// The way in which the outcome of an attempt was lost.
public enum LossCause: String, Sendable, CaseIterable {
  /// No complete response within the time limit.
  case timeOut = "time_out"
  /// The connection to the backend ended before the response was complete, or what came was no response at all.
  case connectionLost = "connection_lost"
  /// The backend has responded with a status, but the rest of its response cannot be read. Only a status of the class
  /// *unknown* makes the record unknown: otherwise no more than the response is lost.
  case malformed
  /// The backend, or an intermediary, responded with a status of the class *unknown*.
  case status
  /// The response to a batch has no certain result for each of its items.
  case results
  /// There was no memory to keep the outcome until the store took it.
  case noMemory = "no_memory"
  /// This process ended before the backend had responded.
  case shutdown
  /// The owner's lease has lapsed without a report from the owner: its process died, or could not reach the store.
  /// Never logged by the owner, but by whoever meets the lease, and never stored: it follows from the record's state.
  case leaseLapsed = "lease_lapsed"

  /// Whether the exchange has ended, so that no late response can come.
  public var endsExchange: Bool { self != .timeOut && self != .leaseLapsed }
}
