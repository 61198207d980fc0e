/// Ends the process, in release builds too, if a condition does not hold that always holds: the machine is in a state
/// that nobody has thought of, and must not send, store or respond by it.
///
/// The condition compares numbers or states that are at hand: it is evaluated on each pass, and changes nothing. Errors
/// that a client, a backend, a store or the system can cause are no broken invariants.
///
/// - Parameter message: The state as it must not be, in one line, for an operator.
@inline(__always)
public func invariant(
  _ condition: @autoclosure () -> Bool, _ message: StaticString, file: StaticString = #fileID,
  line: UInt = #line
) {
  if !condition() { invariantBroken(message, file: file, line: line) }
}

/// Ends the process because an invariant is broken: states it, with its place, on the standard error.
///
/// `preconditionFailure` would end a release build without a word.
@inline(never)
public func invariantBroken(
  _ message: StaticString, file: StaticString = #fileID, line: UInt = #line
) -> Never {
  fatalError("semel: invariant broken: \(message)", file: file, line: line)
}
