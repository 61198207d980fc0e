/// The exchanges of a case, in their order. Equal scripts run once, and their cases judge the same evidence.
public struct Script: Hashable, Sendable {
  public var steps: [Step]

  public init(_ steps: Step...) { self.steps = steps }

  /// The script that every check begins with.
  public static let firstRun = Script(.deliver(Delivery()))

  /// The number of requests that the script sends, those of `settle` counted once.
  public var requests: Int { steps.map(\.requests).reduce(0, +) }

  /// The number of its requests that may create something.
  public var creating: Int { requests - deliveries.count { $0.method == "GET" || $0.method == "OPTIONS" } }

  public var deliveries: [Delivery] { steps.flatMap(\.deliveries) }
}

/// One step of a script.
public enum Step: Hashable, Sendable {
  /// Sends a delivery on a connection of its own and awaits its response.
  case deliver(Delivery)
  /// Opens a connection for each delivery, sends all but the last byte of each, then releases the last bytes together.
  case together([Delivery])
  /// Sends the first delivery, and the others one after the other while it is in flight.
  case overlapping(Delivery, [Delivery])
  /// Sends a delivery whose response nobody reads to its end.
  case hangUp(Delivery, HangUp)
  /// Repeats a delivery while its response may be about one in flight, for a limited time.
  case settle(Delivery)
  /// Sends all deliveries on one connection before it reads a response.
  case pipelined([Delivery])
  /// Lets the time pass after which a key is forgotten.
  case expiry
  /// Sends the first payload under so many fresh keys, one after the other.
  case flood(Int)
  /// Fetches the document to which the last refusal leads, if the same host serves it.
  case documentation

  /// The moment at which the client goes away.
  public enum HangUp: Hashable, Sendable {
    /// At once after its last byte.
    case afterSending
    /// While it waits for the response.
    case whileWaiting
    /// After the first bytes of the response.
    case duringResponse
  }

  /// The deliveries of the step: each becomes one exchange of the evidence.
  public var deliveries: [Delivery] {
    switch self {
    case .deliver(let delivery), .hangUp(let delivery, _), .settle(let delivery): [delivery]
    case .together(let deliveries), .pipelined(let deliveries): deliveries
    case .overlapping(let first, let others): [first] + others
    case .expiry, .documentation, .flood: []
    }
  }

  var requests: Int {
    if case .flood(let count) = self { count } else { deliveries.count }
  }
}
