import Idempotency
import NIOCore
import Platform
import Proxy
import Settings
import Transport

// The process in an operator's hands.
extension Node {
  /// Does something with the store of the first loop, and has every node drop the record from its cache.
  func operate(on id: RecordID, _ work: @escaping @Sendable (Records) async -> Void) {
    let (context, records, store) = (contexts[0], records[0], store.loops[0])
    loops[0].execute {
      context.task {
        await work(records)
        await store.announce(id)
      }
    }
  }

  /// Keeps the node from its store for a time, which others reach.
  func cutOffStore(_ server: StoreServer, for span: Span) {
    server.cutOff(machine, for: span)
    sockets.cutOff(for: span)
  }

  /// Takes the next configuration into use, as after SIGHUP.
  func reload() {
    variant = (variant + 1) % Rules.variants
    let (server, snapshot, backends) = (server, configuration, zip(contexts, backends))
    let upstreams = settings.upstreams
    let context = contexts[0]
    loops[0].execute {
      context.task {
        await server.adopt(snapshot)
        for (context, backend) in backends {
          try? await context.loop.submit { backend.adopt(upstreams) }.get()
        }
      }
    }
  }

  /// Stops as after SIGTERM, in the steps of `ProxyService`. Nothing is called if it is killed meanwhile.
  ///
  /// - Parameters:
  ///   - grace: The time for requests in progress, in milliseconds.
  ///   - onEnd: Called when the process is about to exit, with whether requests were cut.
  func drain(grace: Int64, _ onEnd: @escaping (Bool) -> Void) {
    isDraining = true
    let (server, context) = (server, contexts[0])
    nonisolated(unsafe) let onEnd = onEnd
    loops[0].execute {
      context.task {
        let end = NIODeadline.now() + .milliseconds(grace)
        await server.drain()
        while await !server.isIdle() {
          guard NIODeadline.now() < end else {
            await server.abandon()
            return onEnd(true)
          }
          await context.sleep(milliseconds: 10)
        }
        onEnd(false)
      }
    }
  }
}
