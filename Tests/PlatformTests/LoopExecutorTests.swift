import Dispatch
import NIOCore
import NIOPosix
import Platform
import Testing

/// The place and the time at which the tasks of a loop run.
struct LoopExecutorTests {
  @Test func `a task runs on its loop, also after it waited for another thread`() async throws {
    try await onLoop { context in
      #expect(context.loop.inEventLoop)
      await withUnsafeContinuation { continuation in
        MultiThreadedEventLoopGroup.singleton.any().execute { continuation.resume() }
      }
      #expect(context.loop.inEventLoop)
      async let child = context.loop.inEventLoop
      #expect(await child)
      await Task.yield()
      #expect(context.loop.inEventLoop)
    }
  }

  @Test func `a started task lives on the loop`() async throws {
    let ran = try await onLoop { context in
      await withUnsafeContinuation { continuation in
        context.task { continuation.resume(returning: context.loop.inEventLoop) }
      }
    }
    #expect(ran)
  }

  @Test func `draining runs all ready jobs, and those that they make ready`() async throws {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let context = EventLoopContext(loop: group.next())
    let counts = try await context.loop.submit {
      let counter = Counter()
      context.task {
        counter.count += 1
        context.task { counter.count += 1 }
        // Inside a job: leaves the other for the outer drain.
        context.executor.drain()
        counter.countInside = counter.count
      }
      let before = counter.count
      context.executor.drain()
      return [before, counter.countInside, counter.count]
    }.get()
    #expect(counts == [0, 1, 2])
    try await group.shutdownGracefully()
  }

  @Test func `jobs run in the order in which they became ready`() async throws {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let context = EventLoopContext(loop: group.next())
    let log = Log()
    try await context.loop.submit {
      for index in 0..<100 { context.task { log.entries.append(index) } }
      context.executor.drain()
    }.get()
    // The rest after some time runs in a later turn.
    let giveUp = NIODeadline.now() + .seconds(20)
    while try await context.loop.submit({ log.entries.count }).get() < 100, .now() < giveUp {
      await Task.yield()
    }
    #expect(try await context.loop.submit { log.entries }.get() == Array(0..<100))
    try await group.shutdownGracefully()
  }

  @Test func `tasks that yield endlessly leave the loop its turns`() async throws {
    let turns = try await onLoop { context in
      let counter = Counter()
      context.loop.scheduleTask(in: .milliseconds(1)) { counter.count = 1 }
      let giveUp = NIODeadline.now() + .seconds(20)
      while counter.count == 0, .now() < giveUp { await Task.yield() }
      return counter.count
    }
    #expect(turns == 1)
  }

  @Test func `tasks that yield endlessly leave the sockets their turns`() async throws {
    let received = Counter()
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let context = EventLoopContext(loop: group.next())
    let server = try await ServerBootstrap(group: context.loop)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(ReadCounter(received))
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    let client = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .connect(to: #require(server.localAddress)).get()
    let wasReceived = await context.run {
      client.writeAndFlush(ByteBuffer(string: "x"), promise: nil)
      let giveUp = NIODeadline.now() + .seconds(20)
      while received.count == 0, .now() < giveUp {
        context.executor.perform {}
        await Task.yield()
      }
      return received.count > 0
    }
    #expect(wasReceived)
    try await client.close()
    try await group.shutdownGracefully()
  }

  @Test func `jobs that other threads make ready leave the loop its turns`() async throws {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let context = EventLoopContext(loop: group.next())
    let log = Log()
    let count = 100
    await withTaskGroup(of: Void.self) { tasks in
      // The loop stands still until all jobs are there.
      let areReady = DispatchSemaphore(value: 0)
      context.loop.execute { areReady.wait() }
      for index in 0..<count {
        tasks.addTask(executorPreference: context.executor) {
          if index == 0 { context.loop.inLaterTurn { log.entries.append(-1) } }
          let end = NIODeadline.now() + .milliseconds(1)
          while NIODeadline.now() < end {}
          log.entries.append(index)
        }
      }
      areReady.signal()
    }
    let place = try await context.loop.submit { log.entries.firstIndex(of: -1) }.get()
    #expect(try #require(place) < count / 2)
    try await group.shutdownGracefully()
  }

  @Test func `nothing is lost between threads`() async throws {
    let total = try await onLoop { context in
      await withTaskGroup(of: Int.self) { group in
        for index in 0..<1000 {
          group.addTask {
            let elsewhere = MultiThreadedEventLoopGroup.singleton.any()
            let value = await withUnsafeContinuation { continuation in
              elsewhere.execute { continuation.resume(returning: index) }
            }
            return context.loop.inEventLoop ? value : -1_000_000
          }
        }
        return await group.reduce(0, +)
      }
    }
    #expect(total == 999 * 1000 / 2)
  }
}

/// Touched on one loop alone.
private final class Counter: @unchecked Sendable {
  var count = 0
  var countInside = 0
}

private final class ReadCounter: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private let counter: Counter

  init(_ counter: Counter) { self.counter = counter }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) { counter.count += 1 }
}

/// Touched on one loop alone.
private final class Log: @unchecked Sendable {
  var entries: [Int] = []

  /// From its first line on: what comes before the body's first `await` is on the loop, too.
  @Test func `a job from another thread runs on the loop from its beginning`() async throws {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let context = EventLoopContext(loop: group.next())
    for _ in 0..<20 {
      #expect(!context.loop.inEventLoop)
      #expect(await context.run { context.loop.inEventLoop })
    }
    let refusal = await #expect(throws: Refusal.self) {
      try await context.run { () async throws(Refusal) in throw Refusal(isOnLoop: context.loop.inEventLoop) }
    }
    #expect(refusal?.isOnLoop == true)
    try await group.shutdownGracefully()
  }

  private struct Refusal: Error { var isOnLoop: Bool }
}
