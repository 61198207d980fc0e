import Idempotency
import ServiceLifecycle
import Synchronization

/// The secret of the digests in log and records, on which the nodes of a namespace agree through the store.
final class LogSecret: Sendable {
  private let facts: any NamespaceFacts
  private let digests: LogDigests
  private let secret = Mutex(LogDigests.randomSecret())

  init(facts: any NamespaceFacts, digests: LogDigests) {
    self.facts = facts
    self.digests = digests
  }

  var isShared: Bool { digests.isShared }

  /// Gives the store the secret if it has none, and takes the store's. Called before the first claim.
  func agree() async throws(StoreError) {
    let own = secret.withLock { $0 }
    let shared = Secret(try await facts.establish(.logSecret, as: own.revealed))
    guard !digests.isShared else { return }
    secret.withLock { $0 = shared }
    digests.share(shared)
  }
}

/// Agrees on the secret periodically: a store that came back empty gets it again from the nodes that have it.
struct LogSecretService: Service {
  private static let pause = Duration.seconds(60)
  private static let pauseWithoutStore = Duration.seconds(1)

  let secret: LogSecret

  func run() async throws {
    await cancelWhenGracefulShutdown {
      while !Task.isCancelled {
        try? await secret.agree()
        try? await Task.sleep(for: secret.isShared ? Self.pause : Self.pauseWithoutStore)
      }
    }
  }
}
