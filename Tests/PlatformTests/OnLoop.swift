import NIOCore
import NIOPosix
import Platform

/// Runs a test's body as a task of an event loop of its own, and hands back what it returns.
func onLoop<T: Sendable>(_ body: @escaping @Sendable (EventLoopContext) async throws -> T) async throws -> T {
  let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
  let context = EventLoopContext(loop: group.next())
  let result = await Task(executorPreference: context.executor) { try await body(context) }.result
  try await group.shutdownGracefully()
  return try result.get()
}
