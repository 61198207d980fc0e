import Idempotency

/// The memory that a delivery holds for capturing its response: a reservation, and what the response needs beyond it.
///
/// Its owner must call `release` once the response is not captured any more.
struct ResponseAllowance {
  let memory: ConnectionMemory
  private var reserved = 0
  private var captured = 0
  private var caller: Caller?

  init(of memory: ConnectionMemory) { self.memory = memory }

  var isReserved: Bool { reserved > 0 }

  /// Reserves memory for the response, once; false if there is none. Must precede the claim.
  mutating func reserve(for caller: Caller) -> Bool {
    guard reserved == 0 else { return true }
    let count = MemoryLimits.reservation
    guard memory.shared.captured.add(count, upTo: memory.limits.reserved) else { return false }
    reserved = count
    self.caller = caller
    return true
  }

  /// Takes memory so that `count` bytes may be captured in all; false if there is none.
  mutating func grow(to count: Int) -> Bool {
    let more = count - reserved - captured
    guard more > 0 else { return true }
    guard
      memory.shared.captured.take(
        more, of: .connection(memory.id), holder, beside: captured, within: memory.limits.captured)
    else { return false }
    memory.changeOthers(by: more)
    captured += more
    return true
  }

  /// Keeps the memory for `count` captured bytes, and gives back the rest.
  mutating func shrink(to count: Int) {
    let left = max(count - reserved, 0)
    guard captured > left else { return }
    memory.shared.captured.give(captured - left, of: .connection(memory.id), holder)
    memory.changeOthers(by: left - captured)
    captured = left
  }

  /// Gives back all: the response goes to the client, who is counted from now on, or was given up.
  mutating func release() {
    shrink(to: 0)
    if reserved > 0 { memory.shared.captured.subtract(reserved) }
    reserved = 0
  }

  /// Computed when it is needed: most responses fit in the reservation.
  private var holder: MemoryHolder { .caller(caller?.hashValue ?? 0) }
}
