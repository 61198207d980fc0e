import Logging
import ServiceLifecycle
import Store

/// Checks the namespace for configurations of other nodes, and allows claims once a comparison has succeeded.
struct NamespaceService: Service {
  let namespace: NamespaceGuard
  let stores: [RedisStore]
  let logger: Logger

  func run() async throws {
    await cancelWhenGracefulShutdown {
      while !Task.isCancelled {
        await step()
        try? await Task.sleep(for: pause)
      }
    }
  }

  private var pause: Duration {
    namespace.admission == .admitted ? NamespaceGuard.interval : NamespaceGuard.firstInterval
  }

  private func step() async {
    let before = namespace.admission
    guard before != .admitted else { return await namespace.review() }
    let now = await namespace.beginAgain()
    if now != before { follow(now) }
  }

  func follow(_ admission: NamespaceGuard.Admission) {
    switch admission {
    case .pending: break
    case .admitted: for store in stores { store.admit() }
    case .refused(let reasons):
      for store in stores {
        store.refuseAdmission("its namespace was used with another identity of requests")
      }
      for reason in reasons { logger.critical("\(reason)") }
      logger.critical("no protected request is served: \(IdentityRefusal.summary)")
    }
  }
}

struct IdentityRefusal: Error {
  static let summary =
    "this configuration identifies requests in another way than the one that used its namespace before"

  let reasons: [String]
}

/// The failure of a start because the embedded store could not be read, which has the previous identity of requests.
struct NamespaceUnreadable: Error, CustomStringConvertible {
  let reason: String

  var description: String {
    "the settings that identified requests before could not be read from the store, so that a retry might run again (\(reason)); "
      + "start Semel again once the store can be used"
  }
}
