import Idempotency
import NIOCore
import Wire

@testable import Store

extension Target {
  /// The replies of Redis: they are the same wherever they are cut, and each of them means something or is an error.
  static func redisFault(in bytes: [UInt8]) -> String? {
    let whole = replies(bytes, pieces: bytes.count)
    let trickled = replies(bytes, pieces: 1)
    _ = RedisResponse.read(ByteBuffer(bytes: bytes))
    guard whole == trickled else { return "cutting changes the meaning: \(whole) / \(trickled)" }
    let settings = RedisEndpointSettings(address: .unix(path: "/"))
    for purpose in [RedisPurpose.subscriptions, .records] {
      guard var handshake = try? RedisHandshake(settings, for: purpose) else { return "no handshake" }
      for reply in whole {
        guard case .wait = handshake.received(reply) else { break }
      }
    }
    return nil
  }

  private static func replies(_ bytes: [UInt8], pieces size: Int) -> [RedisValue] {
    var reader = HiredisReader()
    var values: [RedisValue] = []
    var rest = bytes[...]
    while !rest.isEmpty {
      rest.prefix(size).withUnsafeBytes { reader.feed($0) }
      rest = rest.dropFirst(size)
      do throws(RedisProtocolError) {
        while let reply = try reader.next() {
          values.append(reply.value)
          let parsed = ScriptReply(reply)
          if case .result(let result) = parsed.ending {
            _ = try? result.standing(now: parsed.now, response: nil)
          }
          if case .refused(let text) = parsed.ending { _ = RedisRefusal.error(text) }
        }
      } catch {
        return values + [.error(error.text)]
      }
    }
    return values
  }
}
