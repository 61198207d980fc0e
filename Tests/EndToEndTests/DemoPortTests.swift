import TestSupport
import Testing

/// `semel demo` on ports that the system chooses.
struct DemoPortTests {
  @Test(arguments: ["127.0.0.2", "0.0.0.0", "localhost"])
  func `a demo reaches its backend wherever that listens`(host: String) async throws {
    try await Rig.withSlots {
      let (port, backendPort) = (FreePort.find(), FreePort.find())
      let demo = try ManagedProcess([
        SemelProcess.binary, "demo", "--port", "\(port)", "--backend-port", "\(backendPort)",
        "--backend-host", host,
      ])
      let introduction = try await demo.state.until("what to try") { state in
        let text = String(decoding: state.output, as: UTF8.self)
        return text.contains("5. ") ? text : nil
      }
      #expect(introduction.contains("listens on \(host):\(backendPort), Semel"), "\(introduction)")
      let orders = try await HTTPClient(port: port).send("GET", "/v1/orders")
      #expect(orders.status == 200 && orders.text.contains(#""executed":0"#), "\(orders)")
      demo.signal(2)
      #expect(try await demo.exit() == .code(0))
    }
  }

  @Test func `a demo on port 0 prints the ports on which it listens`() async throws {
    try await Rig.withSlots {
      let demo = try ManagedProcess([
        SemelProcess.binary, "demo", "--port", "0", "--backend-port", "0",
      ])
      let introduction = try await demo.state.until("what to try") { state in
        let text = String(decoding: state.output, as: UTF8.self)
        return text.contains("5. ") ? text : nil
      }
      let line = try #require(introduction.split(separator: "\n").first { $0.hasPrefix("A demo backend") })
      let addresses = line.split(separator: "127.0.0.1:").dropFirst()
      let ports = addresses.compactMap { Int($0.prefix(while: \.isNumber)) }
      #expect(ports.count == 2 && !ports.contains(0), "\(line)")
      #expect(!introduction.contains("127.0.0.1:0"))
      for port in ports {
        let orders = try await HTTPClient(port: port).send("GET", "/v1/orders")
        #expect(orders.status == 200 && orders.text.contains(#""executed":0"#), "\(orders)")
      }
      demo.signal(2)
      #expect(try await demo.exit() == .code(0))
    }
  }
}
