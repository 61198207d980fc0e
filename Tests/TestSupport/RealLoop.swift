import NIOCore
import NIOPosix

/// An event loop with a thread of its own, for parts that other threads resume.
package func realLoop() -> any EventLoop { MultiThreadedEventLoopGroup.singleton.next() }
