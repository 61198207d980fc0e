import Glibc

extension RedisServer {
  package enum CommandError: Error { case noResponse }

  /// Runs one command over a blocking connection of its own and returns its whole reply as the protocol spells it
  /// (`+PONG`, `-ERR …`, `:1`), a bulk string as its bytes and an array's members one a line; `nil` for nil.
  @discardableResult
  package func command(_ words: [String]) throws -> String? {
    let descriptor = try connect()
    defer { close(descriptor) }
    var command = "*\(words.count)\r\n"
    for word in words { command += "$\(word.utf8.count)\r\n\(word)\r\n" }
    guard send(descriptor, command, command.utf8.count, Int32(MSG_NOSIGNAL)) == command.utf8.count else {
      throw CommandError.noResponse
    }
    return try reply(descriptor)
  }

  /// Whether it is a master. A failover, which cuts connections, may cut the query's own: it is then not known to be
  /// one.
  package var isMaster: Bool { ((try? command(["ROLE"])) ?? nil)?.hasPrefix("master") == true }

  private func connect() throws -> Int32 {
    // A server that another test starts meanwhile must not inherit it.
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: socketPath.utf8) }
    let connected = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        Glibc.connect(descriptor, pointer, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
      }
    }
    guard connected else {
      close(descriptor)
      throw CommandError.noResponse
    }
    return descriptor
  }

  private func reply(_ descriptor: Int32) throws -> String? {
    let line = try line(descriptor)
    guard line.hasPrefix("$") || line.hasPrefix("*") else { return line }
    guard let count = Int(line.dropFirst()), count >= 0 else { return nil }
    guard line.hasPrefix("$") else {
      return try (0..<count).map { _ in try reply(descriptor) ?? "" }.joined(separator: "\n")
    }
    let bytes = try (0..<count + 2).map { _ in try byte(descriptor) }
    return String(decoding: bytes.dropLast(2), as: UTF8.self)
  }

  private func line(_ descriptor: Int32) throws -> String {
    var bytes: [UInt8] = []
    while true {
      let next = try byte(descriptor)
      if next == 0x0A { return String(decoding: bytes, as: UTF8.self) }
      if next != 0x0D { bytes.append(next) }
    }
  }

  private func byte(_ descriptor: Int32) throws -> UInt8 {
    var byte: UInt8 = 0
    guard recv(descriptor, &byte, 1, 0) == 1 else { throw CommandError.noResponse }
    return byte
  }
}
