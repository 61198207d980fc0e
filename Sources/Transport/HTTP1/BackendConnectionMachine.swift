import Idempotency
import Wire

/// The state machine of one HTTP/1.1 connection to a backend: the exchange that it carries, and its next use. Holds no
/// bytes and performs no I/O.
///
/// Bytes that arrive without an exchange were sent unasked: their place in the order of responses is in doubt, hence
/// the connection is closed.
struct BackendConnectionMachine<Exchange> {
  private enum State {
    /// The next exchange may begin. Followed by `carrying`.
    case idle
    /// An exchange is under way. `keepsAlive`: as far as is known, another may follow. Followed by `tunnel`, `ended` or
    /// `idle`.
    case carrying(Exchange, keepsAlive: Bool)
    /// Both sides have switched to another protocol: bytes pass unchanged. Followed by `idle`.
    case tunnel(Exchange)
    /// An exchange has ended within the present read. The connection is free only with the end of that read, since
    /// stray bytes may follow in it. Followed by `idle`.
    case ended
  }

  private var state = State.idle
  /// Whether no exchange begins any more. One that is under way continues until the socket is closed.
  private(set) var isClosing = false
  /// Whether an exchange has ended on the connection.
  private(set) var wasUsed = false
  /// Whether the end of each response so far is certain, so that the next bytes are the next response's.
  private(set) var hasCertainOrder = true
  /// The time for which the connection may be unused before an exchange, by the backend's terms; `nil` if it has stated
  /// none.
  private(set) var maxIdleTime: Milliseconds?
  /// The number of exchanges that may follow by the backend's terms; `nil` if it has stated none.
  private var exchangesLeft: Int?

  init() {}

  /// The exchange that is under way; `nil` if there is none.
  var exchange: Exchange? {
    switch state {
    case .carrying(let exchange, _), .tunnel(let exchange): exchange
    case .idle, .ended: nil
    }
  }

  var isTunnel: Bool {
    if case .tunnel = state { true } else { false }
  }
}

// The request.
extension BackendConnectionMachine {
  /// Begins an exchange on the free connection.
  mutating func begin(_ exchange: Exchange) {
    guard case .idle = state else {
      invariantBroken("an exchange beside another one")
    }
    invariant(!isClosing, "an exchange begins on a connection that closes")
    invariant(!isSpent, "an exchange begins beyond the terms of its backend")
    state = .carrying(exchange, keepsAlive: true)
  }
}

// The backend's bytes.
extension BackendConnectionMachine {
  enum BytesAction { case decode, passOn, closeForStrayBytes, drop }

  /// The use of bytes that have arrived.
  var bytesAction: BytesAction {
    switch state {
    case .carrying: .decode
    case .tunnel: .passOn
    case .idle, .ended: isClosing ? .drop : .closeForStrayBytes
    }
  }

  /// Handles the decoded head of the final response.
  ///
  /// - Parameter terms: The terms on which the backend keeps the connection. What it has stated before holds until it
  ///   states something else.
  mutating func didReceiveHead(keepsAlive: Bool, hasCertainEnd: Bool, terms: KeepAliveTerms) {
    guard case .carrying(let exchange, _) = state else { return }
    if !hasCertainEnd { hasCertainOrder = false }
    note(terms)
    state = .carrying(exchange, keepsAlive: keepsAlive && !isSpent)
  }

  private mutating func note(_ terms: KeepAliveTerms) {
    // Servers state what is left, or in each response what they take in all.
    if let left = exchangesLeft {
      invariant(left > 0, "an exchange follows the last one that the backend takes")
      exchangesLeft = left - 1
    }
    if let max = terms.max { exchangesLeft = min(exchangesLeft ?? max, max) }
    // Half of it, since the backend's time begins before the response arrives, and ends while a request is on its way.
    if let seconds = terms.timeout { maxIdleTime = .seconds(Int64(min(seconds, Self.maxTimeout))) / 2 }
  }

  /// The maximum time that is read, in seconds: a day.
  private static var maxTimeout: Int { 86_400 }

  /// Whether the backend's terms allow no further exchange.
  private var isSpent: Bool { exchangesLeft == 0 || maxIdleTime == 0 }

  /// Handles a response of 101, after which bytes pass unchanged.
  mutating func didSwitchProtocols() {
    guard case .carrying(let exchange, _) = state else { return }
    state = .tunnel(exchange)
  }

  enum EndAction { case keep, close, closeForStrayBytes }

  /// Handles the decoded end of the response.
  ///
  /// - Parameters:
  ///   - isSent: Whether the whole request was sent; after a part of it the backend waits for the rest.
  ///   - hasStrayBytes: Whether bytes have arrived behind the response.
  mutating func didEndResponse(isSent: Bool, hasStrayBytes: Bool) -> EndAction {
    guard case .carrying(_, let keepsAlive) = state else {
      invariantBroken("the end of a response without an exchange")
    }
    wasUsed = true
    let isReusable = keepsAlive && isSent && !hasStrayBytes && !isClosing
    state = isReusable ? .ended : .idle
    if hasStrayBytes { return .closeForStrayBytes }
    return isReusable ? .keep : .close
  }

  /// Handles the end of a read. Returns whether the connection has thereby become free for the next exchange.
  mutating func didRead() -> Bool {
    guard case .ended = state else { return false }
    state = .idle
    return true
  }
}

// The end.
extension BackendConnectionMachine {
  /// Begins to close the connection. Returns false if that has begun before.
  mutating func close() -> Bool {
    guard !isClosing else { return false }
    isClosing = true
    return true
  }

  /// Ends the exchange that is under way, because its response is invalid or the connection has ended; returns it.
  mutating func endExchange() -> Exchange? {
    defer { state = .idle }
    return exchange
  }
}
