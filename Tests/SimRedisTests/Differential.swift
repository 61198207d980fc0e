import Glibc
import SimRedis
import TestSupport

/// The same random commands to a real server and to a simulated one, whose clocks stand still between two commands.
final class Differential {
  /// The first reply in which the two differ.
  struct Difference: Error, CustomStringConvertible {
    let number: Int
    let command: [Bytes]
    let real: [RESPReply]
    let simulated: [RESPReply]

    private static func text(_ replies: [RESPReply]) -> String {
      var bytes: Bytes = []
      for reply in replies { reply.write(to: &bytes) }
      return String(decoding: bytes, as: UTF8.self).replacing("\r\n", with: " ")
    }

    var description: String {
      let words = command.map { String(decoding: $0, as: UTF8.self).debugDescription }.joined(separator: " ")
      return
        "command \(number) is replied to differently: \(words)\nreal: \(Self.text(real))\nsimulated: \(Self.text(simulated))"
    }
  }

  private let real: RedisServer
  private let realConnections: [RealConnection]
  private let admin: RealConnection
  private let clock: SteppedClock
  private let simulated: SimRedisServer
  private let peers: [SimPeer]
  private var parsers = [RESPReplyParser(), RESPReplyParser()]
  private var commands: RandomCommands
  /// The time of both, in microseconds since 1970.
  private var time: Int64 = 1_800_000_000_000_000
  private var count = 0
  /// The master that the server follows, which nobody reaches.
  private let nowhere: SimRedisServer

  init(_ version: SimRedisVersion, program: String?, commands: RandomCommands) async throws {
    clock = try await SteppedClock()
    try clock.stop(at: time)
    real = try await RedisServer(program: program, clock: clock)
    realConnections = [try RealConnection(real), try RealConnection(real)]
    admin = try RealConnection(real)
    var settings = SimRedisSettings(address: SimAddress(port: real.port))
    settings.version = version
    simulated = SimRedisServer(
      settings, clock: SimRedisClock(microseconds: 0), random: SeededGenerator(seed: 1))
    peers = [try SimPeer(simulated), try SimPeer(simulated)]
    settings.address.port = 1
    nowhere = SimRedisServer(
      settings, clock: SimRedisClock(microseconds: 0), random: SeededGenerator(seed: 2))
    self.commands = commands
  }

  /// Sends so many commands. Throws the first difference.
  func run(_ limit: Int) throws {
    while count < limit {
      if commands.chance(3) { try pass() }
      if commands.chance(100) { try disturb() }
      let connection = commands.chance(8) ? 1 : 0
      commands.time = time / 1000
      try exchange(
        (0..<commands.number(1...20)).map { _ in commands.next(subscribes: connection == 1) }, connection)
    }
  }

  private func pass() throws {
    time += commands.one([1, 999, 1000, 1001, 20_000, 300_000, 5_000_000, 700])
    guard simulated.version == .valkey9 else { return try clock.stop(at: time) }
    // Valkey reads the clock once in a millisecond, and counts what passes until then by the processor's.
    time = time / 1000 * 1000
    try clock.stop(at: time)
    usleep(1500)
  }

  private func exchange(_ batch: [RandomCommand], _ connection: Int) throws {
    // A walk, and what follows its own cursor, are commands of their own.
    for part in batch {
      guard case .walk = part.comparison else { continue }
      try walk(part, connection)
    }
    let batch = batch.filter { if case .walk = $0.comparison { false } else { true } }
    var expected: [[[RESPReply]]] = []
    for command in batch { expected.append(simulate(command.words, connection)) }
    try realConnections[connection].write(batch.flatMap { $0.words.encoded })
    for (command, replies) in zip(batch, expected) {
      count += 1
      for (index, wanted) in replies.enumerated() {
        let received = try wanted.map { _ in try read(index, command, wanted) }
        guard zip(received, wanted).allSatisfy({ Self.agree($0, $1, command.comparison) }) else {
          throw Difference(number: count, command: command.words, real: received, simulated: wanted)
        }
      }
    }
  }

  private func read(_ index: Int, _ command: RandomCommand, _ wanted: [RESPReply]) throws -> RESPReply {
    do { return try realConnections[index].read() } catch {
      throw Difference(number: count, command: command.words, real: [], simulated: wanted)
    }
  }

  /// The replies of the simulated server at each connection.
  private func simulate(_ words: [Bytes], _ connection: Int) -> [[RESPReply]] {
    simulated.receive(words.encoded, on: peers[connection].id, at: time * 1000)
    for output in simulated.takeOutputs() {
      guard case .bytes(let id, let bytes) = output, let index = peers.firstIndex(where: { $0.id == id })
      else {
        continue
      }
      parsers[index].feed(bytes)
    }
    return parsers.indices.map { index in
      var replies: [RESPReply] = []
      while let reply = parsers[index].next() { replies.append(reply) }
      return replies
    }
  }

  private func walk(_ command: RandomCommand, _ connection: Int) throws {
    count += 1
    let found = try keys(command) { words in
      try realConnections[connection].write(words.encoded)
      return try realConnections[connection].read()
    }
    let wanted = keys(command) { simulate($0, connection)[connection][0] }
    guard found == wanted else {
      throw Difference(number: count, command: command.words, real: found, simulated: wanted)
    }
  }

  /// The keys of a whole walk, each once, or its error.
  private func keys(
    _ command: RandomCommand, _ run: ([Bytes]) throws -> RESPReply
  ) rethrows -> [RESPReply] {
    var (words, found) = (command.words, [String: RESPReply]())
    while true {
      let reply = try run(words)
      guard case .array(let parts) = reply, parts.count == 2, case .bulk(let cursor) = parts[0],
        case .array(let keys) = parts[1]
      else { return [reply] }
      for key in keys { found["\(key)"] = key }
      if cursor == Bytes("0".utf8) { return found.sorted { $0.key < $1.key }.map(\.value) }
      words[1] = cursor
    }
  }

  private static func agree(_ one: RESPReply, _ other: RESPReply, _ comparison: RandomCommand.Comparison)
    -> Bool
  {
    switch comparison {
    case .whole, .walk: one == other
    case .channels: withoutChannel(one) == withoutChannel(other)
    case .time: milliseconds(one) == milliseconds(other)
    case .groups(let start, let size): groups(one, start, size) == groups(other, start, size)
    case .lines(let names): lines(one, names) == lines(other, names)
    }
  }

  private static func withoutChannel(_ reply: RESPReply) -> RESPReply {
    guard case .array(let parts) = reply, parts.count == 3 else { return reply }
    return .array([parts[0], parts[2]])
  }

  private static func milliseconds(_ reply: RESPReply) -> RESPReply {
    guard case .array(let parts) = reply, parts.count == 2, case .bulk(let micros) = parts[1],
      let number = Int64(String(decoding: micros, as: UTF8.self))
    else { return reply }
    return .array([parts[0], .integer(number / 1000)])
  }

  private static func groups(_ reply: RESPReply, _ start: Int, _ size: Int) -> [String] {
    guard case .array(let members) = reply, members.count > start else { return ["\(reply)"] }
    let rest = stride(from: start, to: members.count, by: size).map { place in
      "\(members[place..<min(place + size, members.count)])"
    }
    return ["\(members[..<start])"] + rest.sorted()
  }

  private static func lines(_ reply: RESPReply, _ names: [String]) -> [String] {
    guard case .bulk(let text) = reply else { return ["\(reply)"] }
    return String(decoding: text, as: UTF8.self).split(whereSeparator: \.isNewline).map(String.init).filter {
      line in names.contains { line.hasPrefix($0 + ":") }
    }
  }

  private func removeExpired() throws {
    for database in 0..<16 {
      _ = try admin.call("SELECT", "\(database)")
      _ = try admin.call("SCAN", "0", "COUNT", "100000")
    }
    simulated.removeExpired(at: time * 1000)
  }

  /// Changes the server's state in a way that no client's command does.
  private func disturb() throws {
    switch commands.number(0...5) {
    case 0:
      let isFull = commands.chance(2)
      _ = try admin.call("CONFIG", "SET", "maxmemory", isFull ? "1" : "0")
      simulated.maxMemory = isFull ? 1 : nil
    case 1:
      let least = commands.chance(2) ? 1 : 0
      _ = try admin.call("CONFIG", "SET", "min-replicas-to-write", "\(least)")
      simulated.minReplicas = least
    case 2:
      // A replica keeps what has expired, unless its master has removed it before.
      if simulated.isMaster { try removeExpired() }
      _ = try admin.call("REPLICAOF", "127.0.0.1", "1")
      if simulated.isMaster { _ = SimReplicationLink(from: simulated, to: nowhere) }
    case 3, 4:
      _ = try admin.call("REPLICAOF", "NO", "ONE")
      simulated.promote()
    default:
      _ = try admin.call("SCRIPT", "FLUSH")
      simulated.forgetScripts()
    }
  }
}
