import Foundation

/// The TCP connections of this machine, as its kernel lists them (proc_net_tcp(5)).
package struct KernelConnections {
  private struct Entry {
    let localPort: Int
    let remotePort: Int
    /// The bytes that the other side has not acknowledged.
    let unacknowledged: Int
  }

  private let entries: [Entry]

  /// Those of this moment, also the ones that no process has accepted yet.
  package init() throws {
    entries = try ["/proc/net/tcp", "/proc/net/tcp6"].flatMap { path in
      // The kernel gives a page at a time.
      let bytes = try FileHandle(forReadingFrom: URL(fileURLWithPath: path)).readToEnd() ?? Data()
      return String(decoding: bytes, as: UTF8.self).split(separator: "\n").dropFirst().compactMap(Self.entry)
    }
  }

  private static func entry(_ line: Substring) -> Entry? {
    let fields = line.split(separator: " ")
    guard fields.count > 4, let localPort = port(fields[1]), let remotePort = port(fields[2]),
      let unacknowledged = Int(fields[4].prefix(8), radix: 16)
    else { return nil }
    return Entry(localPort: localPort, remotePort: remotePort, unacknowledged: unacknowledged)
  }

  /// The port of an address such as `0100007F:1F90`.
  private static func port(_ address: Substring) -> Int? {
    address.split(separator: ":").last.flatMap { Int($0, radix: 16) }
  }

  /// The most bytes that the kernel holds for the other side of any connection of a port.
  package func unacknowledged(at port: Int) -> Int {
    entries.filter { $0.localPort == port }.map(\.unacknowledged).max() ?? 0
  }

  /// Whether a server's side of the connection from one port to another is there.
  package func serverHas(_ client: Int, to server: Int) -> Bool {
    entries.contains { $0.localPort == server && $0.remotePort == client }
  }
}
