import NIOCore

/// The small writes of one turn of an event loop, which leave together once the turn's events have been handled, as in
/// Redis.
///
/// A write often wakes a peer that sleeps, at a cost of microseconds for the writer. Of peers that share a process only
/// the first is woken so, because the others' bytes arrive while that process is still at work. A replay to one of 32
/// connections thereby takes a tenth less CPU. A turn with one event delays nothing.
///
/// Confined to its loop, hence `@unchecked Sendable`.
public final class WriteBatch: @unchecked Sendable {
  /// The number of writers at which the batch does not wait for the end of the turn: it bounds the delay of the first
  /// to some hundred microseconds.
  private static let maxWriters = 64

  private let loop: any EventLoop
  private var writers: [SocketWriter] = []
  /// The memory of the batch before, which becomes that of the next one.
  private var spare: [SocketWriter] = []

  public init(loop: any EventLoop) {
    self.loop = loop
    writers.reserveCapacity(Self.maxWriters)
    spare.reserveCapacity(Self.maxWriters)
  }

  /// Adds a writer that has bytes to send when the turn ends.
  func add(_ writer: SocketWriter) {
    loop.assertInEventLoop()
    // Tasks run after the events of a turn.
    if writers.isEmpty { loop.execute { [self] in flush() } }
    writers.append(writer)
    if writers.count == Self.maxWriters { flush() }
  }

  private func flush() {
    // A writer that flushes may add others, so that this batch is flushed within itself.
    var batch = spare
    spare = []
    swap(&writers, &batch)
    for writer in batch { writer.flush() }
    batch.removeAll(keepingCapacity: true)
    spare = batch
  }
}
