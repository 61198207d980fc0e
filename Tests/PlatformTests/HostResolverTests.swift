import Dispatch
import NIOCore
import Platform
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1)))
struct HostResolverTests {
  @Test(arguments: ["127.0.0.1", "::1"])
  func `an address is its own, without a lookup`(_ host: String) async throws {
    let lookups = HostLookups { _ in preconditionFailure("a lookup of an address") }
    try await onLoop { context in
      let resolver = HostResolver(on: context.loop, lookups: lookups)
      let found = try await resolver.initiateAQuery(host: host, port: 80).get()
      let found6 = try await resolver.initiateAAAAQuery(host: host, port: 80).get()
      #expect((found + found6).map(\.ipAddress) == [host] && (found + found6).map(\.port) == [80])
      #expect(found.isEmpty == (host == "::1"))
    }
  }

  @Test func `a name that is slow to find holds up no other, and is looked up once at a time`() async throws {
    let mayEnd = DispatchSemaphore(value: 0)
    let names = Mutex<[String]>([])
    let local = try SocketAddress(ipAddress: "127.0.0.1", port: 0)
    let lookups = HostLookups { name in
      names.withLock { $0.append(name) }
      if name == "slow" { mayEnd.wait() }
      return [local]
    }
    try await onLoop { context in
      let slow = [80, 81].map { port in
        HostResolver(on: context.loop, lookups: lookups).initiateAQuery(host: "slow", port: port)
      }
      for host in ["fast", "127.0.0.1"] {
        let found = try await HostResolver(on: context.loop, lookups: lookups)
          .initiateAQuery(host: host, port: 82).get()
        #expect(found.map(\.port) == [82])
      }
      mayEnd.signal()
      for (result, port) in zip(slow, [80, 81]) {
        #expect(try await result.get().map(\.port) == [port])
      }
    }
    #expect(names.withLock { $0.sorted() } == ["fast", "slow"])
  }

  @Test func `the machine's own name is found, and one that nobody has is not`() async throws {
    try await onLoop { context in
      let own = HostResolver(on: context.loop)
      let addresses =
        try await own.initiateAAAAQuery(host: "localhost", port: 7).get()
        + own.initiateAQuery(host: "localhost", port: 7).get()
      #expect(addresses.contains { $0.ipAddress == "127.0.0.1" || $0.ipAddress == "::1" })
      for (host, port) in [("no-such-host.invalid", 7), ("localhost", 65536)] {
        await #expect(throws: UnknownHost.self) {
          _ = try await HostResolver(on: context.loop).initiateAQuery(host: host, port: port).get()
        }
      }
    }
  }
}
