import Idempotency
import ServiceLifecycle

/// Agrees with the other nodes of the namespace on the secret of the log's digests, through the store.
///
/// It repeats this periodically: a store that came back empty gets the secret again from the nodes that have it.
struct LogSecretService: Service {
  private static let pause = Duration.seconds(60)
  private static let pauseWithoutStore = Duration.seconds(1)

  let facts: any NamespaceFacts
  let digests: LogDigests

  func run() async throws {
    await cancelWhenGracefulShutdown {
      var secret = LogDigests.randomSecret()
      while !Task.isCancelled {
        if let shared = try? await facts.establish(.logSecret, as: secret.revealed), !digests.isShared {
          secret = Secret(shared)
          digests.share(secret)
        }
        try? await Task.sleep(for: digests.isShared ? Self.pause : Self.pauseWithoutStore)
      }
    }
  }
}
