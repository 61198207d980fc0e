import Idempotency
import Logging
import NIOPosix
import Platform
import Settings
import Store

/// The comparison of a configuration with its namespace by a command, which enters nothing and may run beside the
/// processes that use the store.
enum NamespaceReading {
  /// No configuration has used the namespace, or there is no store yet.
  case new
  case remembered(NamespaceRegister.Judgement)
  /// The store could not be read, for the given reason.
  case unreadable(String)

  /// The time for which a Redis is tried.
  private static let maxWait = Duration.seconds(5)

  static func of(_ settings: Settings) async -> NamespaceReading {
    let text: String?
    do throws(Fault) {
      switch settings.store.place {
      case .embedded(let path):
        text = try configurations(inFile: path)
      case .redis(let redis):
        text = try await configurations(in: redis, settings.store)
      }
    } catch {
      return .unreadable(error.reason)
    }
    guard let text else { return .new }
    return .remembered(NamespaceRegister.judge(KnownConfiguration(settings), in: text))
  }

  private struct Fault: Error { let reason: String }

  private static func configurations(inFile path: String) throws(Fault) -> String? {
    do throws(EmbeddedStoreError) {
      return try EmbeddedFacts.value(of: .configurations, inFile: path)
    } catch {
      throw Fault(reason: "\(error)")
    }
  }

  private static func configurations(
    in redis: RedisSettings, _ settings: StoreSettings
  ) async throws(Fault) -> String? {
    let endpoint: RedisEndpointSettings
    do { endpoint = try RedisEndpointSettings(redis, in: settings) } catch { throw Fault(reason: "\(error)") }
    // The examination of the servers prints all that it would log about them.
    let logger = Logger(label: "semel.check") { _ in SwiftLogNoOpLogHandler() }
    let context = EventLoopContext(loop: MultiThreadedEventLoopGroup.singleton.next())
    let subscriber = RedisSubscriber(context: context, settings: endpoint, logger: logger)
    let store = RedisStore(
      context: context, settings: endpoint, logger: logger, subscriber: subscriber,
      codec: .plain)
    defer {
      subscriber.close()
      store.close()
    }
    let end = ContinuousClock.now + maxWait
    while true {
      do throws(StoreError) { return try await store.fact(.configurations) } catch {
        // It connects in the background, and reports nothing of that.
        guard ContinuousClock.now < end, (try? await Task.sleep(for: .milliseconds(50))) != nil else {
          throw Fault(reason: error.text)
        }
      }
    }
  }
}
