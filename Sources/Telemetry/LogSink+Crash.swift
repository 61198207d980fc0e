import Glibc

/// The signals of errors in the process itself (an invariant is broken, an access to memory is invalid), and of a
/// watchdog that ends it.
private let fatalSignals = [SIGILL, SIGTRAP, SIGABRT, SIGSEGV, SIGBUS, SIGFPE]

/// The sink that a crash waits for, and what else would handle the fatal signals, by their numbers. Set once, before the
/// handlers that read them.
private nonisolated(unsafe) var awaitedSink: LogSink?
private nonisolated(unsafe) var otherActions: UnsafeMutablePointer<sigaction>?

extension LogSink {
  /// Has a crash of the process write the entries that were taken before it. A process calls it for one sink.
  ///
  /// The thread that crashes waits in the handler of its signal, where it may do little else, until the writing thread
  /// has ended its pause and written. Then the signal takes its course: it ends the process, or prints its stack first
  /// where Swift's runtime does so.
  public func surviveCrashes() {
    let actions = UnsafeMutablePointer<sigaction>.allocate(capacity: Int(NSIG))
    actions.initialize(repeating: sigaction(), count: Int(NSIG))
    (awaitedSink, otherActions) = (self, actions)
    for number in fatalSignals {
      var action = sigaction()
      action.__sigaction_handler.sa_handler = awaitEntries
      sigaction(number, nil, &actions[Int(number)])
      sigaction(number, &action, nil)
    }
  }
}

private func awaitEntries(_ number: Int32) {
  // Some pauses of the writing thread. There is a limit, since the descriptor may take nothing.
  awaitedSink?.awaitWritten(milliseconds: 250)
  if let otherActions { sigaction(number, &otherActions[Int(number)], nil) }
  // It is delivered once this handler returns, before the thread executes anything else.
  raise(number)
}
