import Idempotency

/// The times by the store's clock that a command is given.
struct RedisTimes {
  /// The call's deadline.
  let deadline: StoreInstant
  /// The present time, which the script then does not read; `nil` if it does.
  let present: StoreInstant?
}
