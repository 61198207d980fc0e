import Admin
import Idempotency
import Logging
import ServiceLifecycle
import Settings
import Store
import Synchronization

/// Compares the configuration with its namespace's: at start, at reloads, and as other nodes may enter others.
actor NamespaceGuard {
  /// The pause between two checks for other nodes' configurations.
  static let interval = Duration.seconds(5)
  /// The pause between attempts until the store is reached for the first time.
  static let firstInterval = Duration.milliseconds(250)

  /// Whether protected requests are served with the configuration in use.
  enum Admission: Sendable, Equatable {
    case pending(String)
    case admitted
    /// The configuration identifies requests in another way, for these reasons. A reload or another node may mend that.
    case refused([String])
  }

  private let facts: any NamespaceFacts
  private let namespace: String
  /// `nil` where the store is this process's alone.
  private let directory: (any NamespaceDirectory)?
  /// `nil` where the digests have a configured secret.
  private let logSecret: LogSecret?
  private let logger: Logger
  private let state: Mutex<Admission> = Mutex(.pending("the store has not been reached yet"))
  private let conflictCount = Mutex(0)
  private var settings: Settings
  /// Whether the listeners are bound, so that the configuration may be entered.
  private var mayEnter = false
  /// Whether a reload has adopted `settings`, and not all event loops use them yet.
  private var isReloading = false
  private var isEntered = false
  /// The namespace's text when this process last compared or entered a configuration; `nil` if there was none yet.
  private var held: String?
  /// The namespace's text at the latest review, which is not compared again while it stays the same.
  private var reviewed: String?
  private var warned: Set<String> = []
  private var movedUpstreams: Set<String> = []

  init(
    _ settings: Settings, facts: any NamespaceFacts, directory: (any NamespaceDirectory)? = nil,
    logSecret: LogSecret? = nil, logger: Logger
  ) {
    self.directory = directory
    self.settings = settings
    self.facts = facts
    self.logSecret = logSecret
    self.logger = logger
    namespace = settings.store.namespace
  }

  nonisolated var admission: Admission { state.withLock { $0 } }

  /// The number of configurations that conflict with this one in the namespace, or have since this process started.
  nonisolated var conflicts: Int { conflictCount.withLock { $0 } }

  /// Compares the configuration without entering it, so that a start that fails later leaves the namespace unchanged.
  func compare() async -> Admission {
    do throws(StoreError) {
      held = try await facts.fact(.configurations)
      let judgement = judge(settings, in: held)
      guard let change = judgement.change, change.digest != settings.acceptedChange else { return .admitted }
      return .refused(change.refusal.map(\.description))
    } catch {
      state.withLock { $0 = .pending(error.text) }
      return .pending(error.text)
    }
  }

  /// Compares the configuration and enters it; one attempt. Called when every listener is bound, before any request.
  func begin() async -> Admission {
    mayEnter = true
    do throws(StoreError) {
      let changes = try await enter(settings)
      try await logSecret?.agree()
      // The comparison may have been of a configuration that a reload replaces.
      guard !isReloading else { return admission }
      state.withLock { $0 = changes.isEmpty ? .admitted : .refused(changes) }
    } catch {
      state.withLock { if case .pending = $0 { $0 = .pending(error.text) } }
    }
    return admission
  }

  /// Repeats `begin` if it was called, and no reload is under way, whose settings are not in use yet.
  func beginAgain() async -> Admission { mayEnter && !isReloading ? await begin() : admission }

  /// The reasons against a configuration that is about to be used. `endReload` has to follow if there are none. While
  /// the store cannot be reached, the namespace counts as it was last known, and no digest is accepted.
  func adopt(_ settings: Settings) async -> [String] {
    do throws(StoreError) {
      let changes = try await enter(settings)
      guard changes.isEmpty else { return changes }
    } catch {
      let judgement = held.map { judge(settings, in: $0) }
      if let change = judgement?.change { return change.refusal.map(\.description) + [Self.unreached] }
      logger.warning(
        "the namespace could not be read, so that another node may identify requests differently",
        metadata: ["error": "\(error)"])
      isEntered = false
      held = judgement?.text ?? held
    }
    self.settings = settings
    isReloading = true
    return []
  }

  /// Called once every event loop uses the adopted configuration.
  func endReload() { isReloading = false }

  private static let unreached =
    "store: cannot be reached now, so that no change of identity can be entered; reload again once it can"

  /// Checks for configurations that other nodes have entered in the meantime.
  func review() async {
    do throws(StoreError) {
      let changes = try await isEntered ? look() : enter(settings)
      warn(
        changes, of: "another node identifies requests in another way; a retry that meets it may run again")
    } catch {
      // The store's own log entries report its outage.
      logger.debug("the namespace could not be read", metadata: ["error": "\(error)"])
    }
  }

  /// Enters a configuration. Returns the reasons if it is refused.
  private func enter(_ settings: Settings) async throws(StoreError) -> [String] {
    var text = try await facts.fact(.configurations)
    let isNew = text == nil
    while true {
      held = text ?? held
      // A namespace that has come back empty is the one that it was.
      let judgement = judge(settings, in: held)
      if let change = judgement.change {
        let reasons = change.refusal.map(\.description)
        guard change.digest == settings.acceptedChange else { return reasons }
        warn(
          reasons.dropLast(),
          of: "requests are identified in another way from now on, as allow_identity_change permits")
      }
      guard let new = judgement.text ?? (text == nil ? held : nil) else { break }
      text = try await facts.replace(.configurations, text, with: new)
      guard text != new else { break }
    }
    held = text ?? held
    isEntered = true
    await register(settings, isNew: isNew)
    return []
  }

  /// Enters the configuration in the store's directory. Warns, and does not refuse, if the namespace is new and the
  /// same configuration has used another one: every sidecar has its backend at 127.0.0.1, and environments may share a
  /// store.
  private func register(_ settings: Settings, isNew: Bool) async {
    guard let directory else { return }
    let digest = KnownConfiguration(settings).digest
    do throws(StoreError) {
      if isNew {
        let known = try await directory.configurations().filter { $0.key != namespace && $0.value == digest }
        if !known.isEmpty { warnOfRename(from: known.keys.sorted()) }
      }
      try await directory.enter(namespace, as: digest)
    } catch {
      logger.warning(
        "the store's namespaces cannot be listed, so that a namespace that was renamed by mistake is not noticed",
        metadata: ["error": "\(error)"])
    }
  }

  private func warnOfRename(from others: [String]) {
    logger.error(
      """
      THE NAMESPACE \(namespace) IS NEW, AND THIS CONFIGURATION HAS USED ANOTHER ONE IN THIS REDIS: if \
      store.namespace was renamed, no record is found any more and a retry runs again; write the old name. If this \
      is another service or environment, all is well
      """, metadata: ["namespaces": "\(others.joined(separator: ", "))"])
  }

  /// The differences from a configuration that has replaced this one, which an empty namespace gets again.
  private func look() async throws(StoreError) -> [String] {
    let text = try await facts.fact(.configurations)
    guard text != nil else { return try await enter(settings) }
    guard text != reviewed else { return [] }
    reviewed = text
    return judge(settings, in: text).change?.refusal.dropLast().map(\.description) ?? []
  }

  private func judge(_ settings: Settings, in text: String?) -> NamespaceRegister.Judgement {
    let judgement = NamespaceRegister.judge(KnownConfiguration(settings), in: text)
    logger.debug("the configuration was compared with those that its namespace remembers")
    guard directory != nil else { return judgement }
    // The set accumulates, because a configuration that was replaced disappears from the namespace's text.
    movedUpstreams.formUnion(judgement.movedUpstreams)
    let count = movedUpstreams.count + (judgement.change == nil ? 0 : 1)
    conflictCount.withLock { $0 = count }
    for sentence in judgement.movedUpstreams where warned.insert(sentence).inserted {
      logger.error(
        """
        ANOTHER CONFIGURATION USES THE NAMESPACE \(namespace), AND REQUESTS OF DIFFERENT SERVICES MAY SHARE RECORDS: \
        \(sentence); where these are different services, give each a store.namespace of its own
        """)
    }
    return judgement
  }

  private func warn(_ reasons: some Sequence<String>, of subject: String) {
    for reason in reasons where warned.insert(reason).inserted {
      logger.warning("\(subject)", metadata: ["reason": "\(reason)"])
    }
  }
}

extension NamespaceGuard {
  nonisolated var readiness: Readiness {
    switch admission {
    case .pending(let reason): .notReady("the store has not been reached: \(reason)")
    case .refused: .notReady(IdentityRefusal.summary)
    case .admitted: .ready
    }
  }
}

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
