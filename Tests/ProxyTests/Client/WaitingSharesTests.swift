import Idempotency
import Testing

@testable import Proxy

/// The clients' shares of what waits for them.
struct WaitingSharesTests {
  private static let limits: WaitingShares.Limits = {
    var limits = LimitSettings()
    limits.bodyMemory = 64 << 20
    limits.maxInFlight = 80
    return .init(limits)
  }()

  private static func take(
    _ shares: WaitingShares, _ bytes: Int, requests: Int = 0, of client: String
  ) -> Bool {
    shares.take(.init(bytes: bytes, requests: requests), of: .address(client), within: limits)
  }

  @Test func `one client has a quarter of the share, and few clients no more than half of it`() {
    let shares = WaitingShares()
    #expect(Self.take(shares, 3 << 20, of: "a") && Self.take(shares, 1 << 20, of: "a"))
    #expect(!Self.take(shares, 1, of: "a") && Self.take(shares, 4 << 20, of: "b"))
    #expect(Self.take(shares, 1, of: "c") && !Self.take(shares, 1 << 20, of: "c"))
    shares.give(.init(bytes: 1 << 20), of: .address("a"))
    #expect(!Self.take(shares, 1 << 20, of: "a") && Self.take(shares, (1 << 20) - 1, of: "a"))
  }

  @Test func `clients that hold little find room beside those that take all they may`() {
    let shares = WaitingShares()
    for client in ["a", "b"] { #expect(Self.take(shares, 4 << 20, of: client)) }
    let little = 64 << 10
    #expect(Self.take(shares, little / 2, of: "c") && Self.take(shares, little / 2, of: "c"))
    #expect(!Self.take(shares, 1, of: "c"))
    for client in 1..<128 { #expect(Self.take(shares, little, of: "\(client)")) }
    #expect(!Self.take(shares, 1, of: "e") && shares.held.bytes == 16 << 20)
    shares.give(.init(bytes: 1), of: .address("c"))
    #expect(Self.take(shares, 1, of: "e"))
  }

  @Test func `requests that wait for bodies leave half of those in flight to the others`() {
    let shares = WaitingShares()
    #expect((0..<20).allSatisfy { _ in Self.take(shares, 1, requests: 1, of: "a") })
    #expect(!Self.take(shares, 1, requests: 1, of: "a") && Self.take(shares, 1, of: "a"))
    for client in 0..<20 { #expect(Self.take(shares, 1, requests: 1, of: "\(client)")) }
    #expect(!Self.take(shares, 1, requests: 1, of: "1"))
    #expect(!Self.take(shares, 1, requests: 1, of: "e") && shares.held.requests == 40)
  }

  @Test func `a head that is larger than a client's share may be its only one`() {
    let shares = WaitingShares()
    #expect(Self.take(shares, 5 << 20, of: "a") && !Self.take(shares, 1, of: "a"))
    #expect(!Self.take(shares, 17 << 20, of: "b"))
  }

  @Test func `the shares of connections that are no single client's are apart`() {
    let shares = WaitingShares()
    let objects = [WaitingShares(), WaitingShares()]
    for object in objects {
      let client = WaitingShares.Client.connection(ObjectIdentifier(object))
      #expect(shares.take(.init(bytes: 4 << 20), of: client, within: Self.limits))
      #expect(!shares.take(.init(bytes: 1), of: client, within: Self.limits))
    }
  }
}
