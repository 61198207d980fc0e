import Foundation
import Logging
import SemelClient
import SemelOutbox
import ServiceLifecycle
import Shop

/// A queue is a service: on SIGTERM its group cancels it, and the next start repeats what was under way.
struct QueueService: Service {
  let outbox: Outbox

  func run() async throws {
    try await cancelWhenGracefulShutdown { try await outbox.run() }
  }
}

/// A service that reports what the queue does.
struct ReportService: Service {
  let outbox: Outbox
  let logger: Logger

  func run() async throws {
    for await change in outbox.changes().cancelOnGracefulShutdown() {
      guard case .ended(let intent, let outcome) = change else { continue }
      logger.info("an intent has ended", metadata: ["key": "\(intent.key)", "outcome": "\(outcome.name)"])
    }
  }
}

extension QueuedOutcome {
  var name: String {
    switch self {
    case .completed(_, let wasReplayed): wasReplayed ? "completed, replayed" : "completed"
    case .rejected: "rejected"
    case .unknown: "unknown"
    case .expired: "expired"
    case .cancelled: "cancelled"
    }
  }
}

/// `worker FILE ORIGIN` sends what other processes enqueue in FILE, until it is told to stop.
@main
struct Worker {
  static func main() async throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 3, let origin = Origin(arguments[2]) else {
      FileHandle.standardError.write(Data("usage: worker FILE ORIGIN\n".utf8))
      exit(2)
    }
    let outbox = try await Shop(file: arguments[1], origin: origin).outbox
    let logger = Logger(label: "worker")
    let group = ServiceGroup(
      configuration: .init(
        services: [
          .init(service: QueueService(outbox: outbox)),
          .init(service: ReportService(outbox: outbox, logger: logger)),
        ],
        gracefulShutdownSignals: [.sigterm, .sigint], logger: logger))
    try await group.run()
  }
}
