import ClientTestSupport
import Foundation
import GRDB
import HTTPTypes
import SemelClient
import SemelOutbox

/// A database, a server and a time, on which outboxes are opened as processes would.
final class Rig: Sendable {
  let database: any DatabaseWriter
  let server: ScriptedServer
  let clock = TestClock(isManual: true)
  let folder: URL

  init(_ server: ScriptedServer) throws {
    self.server = server
    folder = FileManager.default.temporaryDirectory.appending(path: "semel-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    database = try DatabaseQueue(path: folder.appending(path: "app.sqlite").path())
    try database.write { db in try db.execute(sql: "CREATE TABLE note (text TEXT)") }
  }

  deinit { try? FileManager.default.removeItem(at: folder) }

  convenience init(_ ends: [Result<Response, TransportError>]) throws { try self.init(ScriptedServer(ends)) }

  func outbox(
    _ settings: Outbox.Settings = .init(), policy: Policy = .standard, budgets: RetryBudgets = RetryBudgets(),
    credentials: (any CredentialSource)? = nil, in database: (any DatabaseWriter)? = nil
  ) async throws -> Outbox {
    var settings = settings
    settings.leaseClock = LeaseClock(elapsed: { [clock] in clock.now.offset }, boot: "boot")
    return try await Outbox(
      database: database ?? self.database, origin: .example, transport: server, policy: policy,
      credentials: credentials, budgets: budgets, settings: settings, environment: .test(clock, random: nil))
  }

  var notes: [String] {
    get throws { try database.read { db in try String.fetchAll(db, sql: "SELECT text FROM note") } }
  }
}

/// The request of most tests.
let order = IntentRequest(method: .post, path: "/v1/orders", body: .bytes([1]))
