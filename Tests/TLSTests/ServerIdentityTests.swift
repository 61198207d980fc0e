import SwiftASN1
import Testing
import X509

@testable import TLS

/// Names and addresses that a server's certificate proves, and those that only look like it.
struct ServerIdentityTests {
  @Test(arguments: [
    ("orders.internal", "orders.internal"), ("Orders.Internal", "orders.internal"),
    ("orders.internal.", "orders.internal"), ("orders.internal", "ORDERS.internal."),
    ("a.example.com", "*.example.com"), ("xn--bcher-kva.example", "xn--bcher-kva.example"),
  ]) func `a name is proven`(host: String, name: String) {
    #expect(ServerIdentity(host).isAmong([.dnsName("first.example"), .dnsName(name)]))
  }

  @Test(arguments: [
    ("orders.internal", "orders.internal.evil"), ("orders.internal", "internal"),
    ("a.b.example.com", "*.example.com"),
    ("example.com", "*.example.com"), (".example.com", "*.example.com"), ("com", "*"),
    ("ab.example.com", "a*.example.com"),
    ("a.example.com", "a.*.com"), ("bücher.example", "bücher.example"), ("10.0.0.1", "10.0.0.1"), ("", ""),
    ("*.example.com", "*.example.com"),
  ]) func `a name is not proven`(host: String, name: String) {
    #expect(!ServerIdentity(host).isAmong([.dnsName(name)]))
  }

  private static func address(_ bytes: [UInt8]) -> [GeneralName] {
    [.ipAddress(ASN1OctetString(contentBytes: bytes[...]))]
  }

  @Test func `an address is proven by the same address alone`() {
    let loopback6: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    #expect(ServerIdentity("127.0.0.1").isAmong(Self.address([127, 0, 0, 1])))
    #expect(ServerIdentity("::1").isAmong(Self.address(loopback6)))
    #expect(!ServerIdentity("127.0.0.1").isAmong(Self.address([127, 0, 0, 2])))
    #expect(!ServerIdentity("::1").isAmong(Self.address([0, 0, 0, 1])))
    #expect(!ServerIdentity("127.0.0.1").isAmong(Self.address([127, 0, 0])))
    #expect(!ServerIdentity("localhost").isAmong(Self.address([127, 0, 0, 1])))
    #expect(!ServerIdentity("127.0.0.1").isAmong([.uniformResourceIdentifier("127.0.0.1")]))
  }
}
