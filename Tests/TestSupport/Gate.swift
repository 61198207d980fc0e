import NIOConcurrencyHelpers

/// Holds something back until a test opens it, once and for all.
package final class Gate: Sendable {
  private let state = NIOLockedValueBox<(isOpen: Bool, waiting: [@Sendable () -> Void])>((false, []))

  package init() {}

  /// Lets everything through, also what comes later.
  package func open() {
    let waiting = state.withLockedValue { state in
      defer { state = (true, []) }
      return state.waiting
    }
    for body in waiting { body() }
  }

  /// Runs `body` once the gate is open; at once where it is.
  package func whenOpen(_ body: @escaping @Sendable () -> Void) {
    let isOpen = state.withLockedValue { state in
      if !state.isOpen { state.waiting.append(body) }
      return state.isOpen
    }
    if isOpen { body() }
  }
}
