import Idempotency
import Logging
import NIOPosix
import Platform
import Settings
import Store

/// The comparison of a configuration with its namespace by a command, which enters nothing.
enum NamespaceReading {
  private static let maxWait = Duration.seconds(5)

  /// Returns the comparison; `nil` where no configuration has used the namespace, or there is no store yet.
  static func judgement(of settings: Settings) async throws -> NamespaceRegister.Judgement? {
    let text =
      switch settings.store.place {
      case .embedded(let path): try EmbeddedFacts.value(of: .configurations, inFile: path)
      case .redis(let redis): try await configurations(in: redis, settings.store)
      }
    return text.map { NamespaceRegister.judge(KnownConfiguration(settings), in: $0) }
  }

  private static func configurations(
    in redis: RedisSettings, _ settings: StoreSettings
  ) async throws -> String? {
    let endpoint = try RedisEndpointSettings(redis, in: settings)
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
          throw error
        }
      }
    }
  }
}
