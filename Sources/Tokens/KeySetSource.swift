import Idempotency
import Logging
import Platform
import Synchronization
import Wire

/// A key set in a file or at a URL, fetched again and again. The last good set stays in use.
///
/// Each fetch runs on a thread of its own, since it blocks.
public final class KeySetSource: Sendable {
  fileprivate struct State {
    var set = KeySet()
    var edition = 0
    var digest: Digest256?
    var refresh = KeyRefresh()
    var status: FileStatus?
    var begun = 0
    /// Whether nobody waits any more for the fetch under way.
    var isOverdue = false
    var waiters: [UnsafeContinuation<Void, Never>] = []
    var renewedAt: Int64?
    var fetches = 0
    var failures = 0
    var fault: KeySetFault?
  }

  /// The maximum size of a key set, in bytes. Sets of issuers have a few kilobytes.
  public static let maxBytes = 1 << 20

  /// The file's path or the URL.
  public let name: String
  private let isFile: Bool
  private let logger: Logger
  private let maxWait: Duration
  private let load: @Sendable () throws(KeySetFault) -> [UInt8]
  private let state = Mutex(State())

  /// - Parameters:
  ///   - maxWait: The maximum time that anybody waits for a fetch.
  ///   - load: Returns the document, of at most `maxBytes`. May block.
  public init(
    name: String, isFile: Bool, logger: Logger, maxWait: Duration = .seconds(6),
    load: @escaping @Sendable () throws(KeySetFault) -> [UInt8]
  ) {
    self.name = name
    self.isFile = isFile
    self.logger = logger
    self.maxWait = maxWait
    self.load = load
  }

  /// The keys, and the number of their edition.
  var keys: (set: KeySet, edition: Int) { state.withLock { ($0.set, $0.edition) } }

  var edition: Int { state.withLock { $0.edition } }

  var isEmpty: Bool { state.withLock { $0.set.isEmpty } }

  /// Fetches the keys if that is due. Called at the start and every few seconds.
  public func renew() {
    let status = isFile ? FileStatus(path: name) : nil
    let begins = state.withLock { state in
      let hasChanged = isFile && status != state.status
      guard state.refresh.begins(at: Self.now, hasChanged: hasChanged) else { return false }
      state.status = status
      return true
    }
    if begins { fetch() }
  }

  /// Waits for the end of the fetch that is under way, for at most `maxWait` from its beginning.
  public func settled() async {
    await withUnsafeContinuation { continuation in
      let waits = state.withLock { state in
        let waits = state.refresh.isFetching && !state.isOverdue
        if waits { state.waiters.append(continuation) }
        return waits
      }
      if !waits { continuation.resume() }
    }
  }

  /// Fetches the keys because one is unknown in an edition, if that is allowed, or waits for the fetch that is under
  /// way.
  ///
  /// - Returns: Whether the keys are others now.
  func awaitNewKeys(since edition: Int) async -> Bool {
    let action = state.withLock { state -> KeyRefresh.UnknownKeyAction in
      state.edition == edition ? state.refresh.keyUnknown(at: Self.now) : .giveUp
    }
    switch action {
    case .giveUp: break
    case .fetch:
      fetch()
      await settled()
    case .awaitFetch: await settled()
    }
    return self.edition != edition
  }

  private static var now: Int64 { BootInstant.now.nanoseconds / 1_000_000 }

  private func fetch() {
    let number = state.withLock { state in
      state.begun += 1
      state.isOverdue = false
      return state.begun
    }
    Task { [self] in
      try? await Task.sleep(for: maxWait)
      stopWaiting(forFetch: number)
    }
    let isStarted = startThread { [self] in
      let bytes: Result<[UInt8], KeySetFault>
      do throws(KeySetFault) { bytes = .success(try load()) } catch { bytes = .failure(error) }
      Task {
        let set: Result<(KeySet, Digest256), KeySetFault>
        do throws(KeySetFault) {
          let document = try bytes.get()
          set = .success((try await KeySet(document: document), .sha256(of: document)))
        } catch {
          set = .failure(error)
        }
        ended(set)
      }
    }
    if !isStarted { ended(.failure(KeySetFault("no thread could be started"))) }
  }

  private func stopWaiting(forFetch number: Int) {
    let waiters = state.withLock { state -> [UnsafeContinuation<Void, Never>] in
      guard state.refresh.isFetching, state.begun == number else { return [] }
      state.isOverdue = true
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters { waiter.resume() }
  }

  private func ended(_ result: Result<(KeySet, Digest256), KeySetFault>) {
    let (waiters, report) = state.withLock { state in
      defer { state.waiters = [] }
      return (state.waiters, state.adopt(result, at: Self.now))
    }
    log(report)
    for waiter in waiters { waiter.resume() }
  }
}

extension KeySetSource.State {
  fileprivate mutating func adopt(
    _ result: Result<(KeySet, Digest256), KeySetFault>, at now: Int64
  ) -> KeySetSource.Report? {
    fetches += 1
    switch result {
    case .success(let (new, newDigest)):
      refresh.ended(isSuccess: true, at: now)
      renewedAt = now
      let hadFault = fault != nil
      fault = nil
      guard newDigest != digest else { return hadFault ? .renewed(set) : nil }
      digest = newDigest
      set = new
      edition += 1
      return .renewed(new)
    case .failure(let fault):
      refresh.ended(isSuccess: false, at: now)
      failures += 1
      self.fault = fault
      return .failed(fault, hasKeys: !set.isEmpty)
    }
  }
}

extension KeySetSource {
  fileprivate enum Report {
    case renewed(KeySet)
    case failed(KeySetFault, hasKeys: Bool)
  }

  private func log(_ report: Report?) {
    switch report {
    case nil: break
    case .renewed(let set): log(set)
    case .failed(let fault, let hasKeys):
      logger.error(
        hasKeys
          ? "the keys of tokens could not be read again; the ones before stay in use"
          : "the keys of tokens cannot be read: every request that needs a token is refused",
        metadata: ["source": "\(name)", "error": "\(fault)"])
    }
  }

  private func log(_ set: KeySet) {
    logger.info(
      "the keys of tokens were read",
      metadata: [
        "source": "\(name)", "keys": "\(set.count)", "unusable": "\(set.unusable)",
        "left_out": "\(set.leftOut)",
      ])
    if set.beyondLimit > 0 {
      logger.warning(
        """
        keys of tokens are left out, since their set has too many: tokens by these are refused; take keys that sign no \
        more out of the set
        """,
        metadata: ["source": "\(name)", "left_out": "\(set.beyondLimit)", "limit": "\(KeySet.maxKeys)"])
    }
    if set.untried > 0 {
      logger.warning(
        """
        keys of tokens are left out, since too many before them have no kid either, or the same: tokens by these are \
        refused; give each key a kid of its own
        """,
        metadata: ["source": "\(name)", "left_out": "\(set.untried)", "limit": "\(KeySet.maxTries)"])
    }
  }

  /// The source and its state, for a person.
  public var line: String {
    state.withLock { state in
      let keys =
        state.set.isEmpty ? "no keys" : state.set.count == 1 ? "1 key" : "\(state.set.count) keys"
      let leftOut = state.set.leftOut > 0 ? ", \(state.set.leftOut) left out" : ""
      return "jwt \(name): \(keys)\(leftOut)" + (state.fault.map { "; failing: \($0)" } ?? "")
    }
  }

  /// The numbers of a source at one moment.
  public struct Figures: Sendable {
    public let keys: Int
    public let fetches: Int
    public let failures: Int
    /// The time since the last fetch that succeeded, in seconds; `nil` before the first.
    public let age: Double?
  }

  public var figures: Figures {
    state.withLock { state in
      Figures(
        keys: state.set.count, fetches: state.fetches, failures: state.failures,
        age: state.renewedAt.map { Double(Self.now - $0) / 1000 })
    }
  }
}
