/// The reasons for which a Redis may lose records, from its own `INFO`. A lost record lets a retry execute the request
/// a second time.
enum RedisDurability {
  static func doubts(memory reply: RedisValue) -> [String] {
    guard let limit = reply.info("maxmemory"), let policy = reply.info("maxmemory_policy")
    else {
      return ["INFO memory is refused, so it cannot be checked whether this Redis evicts records"]
    }
    guard limit != "0", policy != "noeviction" else { return [] }
    return [
      "maxmemory-policy is \(policy): this Redis evicts records when its memory is full; set noeviction"
    ]
  }

  static func doubts(persistence reply: RedisValue) -> [String] {
    guard let isOn = reply.info("aof_enabled") else {
      return ["INFO persistence is refused, so it cannot be checked whether this Redis keeps records on disk"]
    }
    guard isOn != "1" else { return [] }
    return ["appendonly is no: this Redis forgets the newest records when it crashes; set appendonly yes"]
  }

  /// The doubt of a Redis that has evicted keys. It counts them since its start, whatever its settings are now. The
  /// text does not contain the number, with which it would be another doubt at each inspection.
  static func doubts(statistics reply: RedisValue) -> [String] {
    guard let count = reply.info("evicted_keys"), count != "0" else { return [] }
    return [
      "it has evicted keys, which may have been records: set noeviction, and CONFIG RESETSTAT after it"
    ]
  }
}
