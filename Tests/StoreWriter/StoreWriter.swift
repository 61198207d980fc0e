import Glibc
import Idempotency
import Logging
import NIOCore
import Store

/// A process of the embedded store's tests, to be killed or to meet a full disk: completes records and prints
/// the id of each one that the store has acknowledged.
///
/// `store-writer forever FILE` writes until it is killed. `store-writer limited FILE` lowers its own limit
/// for the size of a file, writes until that fails, raises it, and writes once more; each failure prints
/// `failed`.
@main struct StoreWriter {
  static func main() async throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 3 else { exit(2) }
    let store = try EmbeddedStore(path: arguments[2], logger: Logger(label: "store-writer"))
    switch arguments[1] {
    case "forever": await writeForever(store)
    case "limited": try await writePastLimit(store)
    default: exit(2)
    }
  }

  /// Sixteen tasks, so that the kill meets groups that are waiting, running and committing.
  private static func writeForever(_ store: EmbeddedStore) async {
    await withTaskGroup { group in
      for _ in 0..<16 {
        group.addTask {
          while true { await record(on: store, bodyBytes: 100) }
        }
      }
    }
  }

  private static func writePastLimit(_ store: EmbeddedStore) async throws {
    signal(SIGXFSZ, SIG_IGN)
    try limit(1 << 20)
    while await record(on: store, bodyBytes: 32 << 10) {}
    guard case .failing = store.monitor.state.status else { exit(3) }
    // A claim that failed is free once there is room again.
    try limit(rlim_t.max)
    guard await record(on: store, bodyBytes: 32 << 10) else { exit(1) }
    guard case .serving = store.monitor.state.status else { exit(4) }
    await store.close()
  }

  private static func limit(_ bytes: rlim_t) throws {
    var limit = rlimit()
    guard getrlimit(resource, &limit) == 0 else { exit(1) }
    limit.rlim_cur = min(bytes, limit.rlim_max)
    guard setrlimit(resource, &limit) == 0 else { exit(1) }
  }

  private static let resource = Int32(RLIMIT_FSIZE.rawValue)

  @discardableResult
  private static func record(on store: EmbeddedStore, bodyBytes: Int) async -> Bool {
    var generator = SystemRandomNumberGenerator()
    guard let digest = Digest256((0..<32).map { _ in UInt8.random(in: .min ... .max, using: &generator) })
    else {
      return false
    }
    let request = ClaimRequest(
      id: RecordID(digest), owner: .random(), fingerprint: Fingerprint(recipe: Recipe(), digest: digest),
      lease: .seconds(60), takeOver: .never, unknownRetention: .seconds(60), remember: .seconds(60))
    let body = ByteBuffer(string: digest.text + String(repeating: ".", count: bodyBytes))
    let response = RecordedResponse(status: 200, fields: ByteBuffer(), body: body)
    let completion = Completion(outcome: .whole(response), retention: .seconds(600), remember: .seconds(600))
    do {
      guard case .granted(let claim) = try await store.claim(request) else { exit(1) }
      guard try await store.complete(claim, with: completion).outcome == .done else { exit(1) }
      report(digest.text)
      return true
    } catch {
      report("failed")
      return false
    }
  }

  private static func report(_ line: String) {
    let bytes = Array("\(line)\n".utf8)
    guard write(1, bytes, bytes.count) == bytes.count else { exit(1) }
  }
}
