import Idempotency
import Wire

/// The masters of a cluster by the slots that they serve. Pure.
struct SlotMap: Equatable {
  static let slotCount = 16384
  private static let none = UInt16.max

  /// The masters in the order in which they were named, also those without slots.
  private(set) var masters: [ServerAddress] = []
  private var places: [ServerAddress: UInt16] = [:]
  private var owners: [UInt16]
  private(set) var uncoveredCount = slotCount

  init() { owners = [UInt16](repeating: Self.none, count: Self.slotCount) }

  /// Reads a reply of `node` to `CLUSTER SLOTS`; `nil` if it is none.
  init?(_ reply: RedisValue, from node: ServerAddress) {
    guard case .array(let ranges) = reply else { return nil }
    self.init()
    let read = ranges.compactMap { Self.range($0, from: node) }.sorted {
      $0.slots.lowerBound < $1.slots.lowerBound
    }
    guard read.count == ranges.count else { return nil }
    var end = 0
    for (slots, master) in read {
      guard slots.lowerBound >= end, let owner = place(of: master) else { return nil }
      end = slots.upperBound + 1
      // Each range is filled at once, since requests wait.
      owners.withUnsafeMutableBufferPointer { $0[slots].update(repeating: owner) }
      uncoveredCount -= slots.count
    }
    invariant(uncoveredCount >= 0, "more slots are served than there are")
  }

  subscript(slot: Int) -> ServerAddress? {
    let index = owners[slot]
    return index == Self.none ? nil : masters[Int(index)]
  }

  /// Takes a single slot's master. Nothing changes if as many masters are known as there are slots.
  mutating func assign(_ slot: Int, to master: ServerAddress) {
    guard let owner = place(of: master) else { return }
    if owners[slot] == Self.none { uncoveredCount -= 1 }
    invariant(uncoveredCount >= 0, "a slot counts as served twice")
    owners[slot] = owner
  }

  /// The index of a master, which it adds if it is new; `nil` without room.
  private mutating func place(of master: ServerAddress) -> UInt16? {
    if let known = places[master] { return known }
    guard masters.count < Self.slotCount else { return nil }
    let place = UInt16(masters.count)
    places[master] = place
    masters.append(master)
    return place
  }

  var firstSlots: [(slot: Int, master: ServerAddress)] {
    var found: [(slot: Int, master: ServerAddress)] = []
    var seen = Set([Self.none])
    var last = Self.none
    for (slot, owner) in owners.enumerated() where owner != last {
      last = owner
      if seen.insert(owner).inserted { found.append((slot, masters[Int(owner)])) }
    }
    return found
  }

  /// The neighbouring slots of one master from a slot on, or from the next one that is served; `nil` if none is.
  func run(from slot: Int) -> (slots: ClosedRange<Int>, master: ServerAddress)? {
    var first = slot
    while first < Self.slotCount, owners[first] == Self.none { first += 1 }
    guard first < Self.slotCount else { return nil }
    var last = first
    while last + 1 < Self.slotCount, owners[last + 1] == owners[first] { last += 1 }
    return (first...last, masters[Int(owners[first])])
  }

  static let digestLength = 16

  /// A digest of the slots and their masters, the same in every process: FNV-1a of 64 bits.
  var digest: String {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    var next = 0
    while let run = run(from: next) {
      for byte in "\(run.slots.lowerBound)-\(run.slots.upperBound) \(run.master);".utf8 {
        hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3
      }
      next = run.slots.upperBound + 1
    }
    return hash.hexText
  }

  private static func range(_ value: RedisValue, from node: ServerAddress) -> (
    slots: ClosedRange<Int>, master: ServerAddress
  )? {
    guard case .array(let parts) = value, parts.count >= 3, case .integer(let first) = parts[0],
      case .integer(let last) = parts[1], 0 <= first, first <= last, last < slotCount,
      let master = address(parts[2], from: node)
    else { return nil }
    return (Int(first)...Int(last), master)
  }

  private static func address(_ value: RedisValue, from node: ServerAddress) -> ServerAddress? {
    guard case .array(let parts) = value, parts.count >= 2, case .integer(let port) = parts[1],
      1...65535 ~= port
    else { return nil }
    // `?` and null stand for a host that the node does not know.
    let named = parts[0].text ?? ""
    return .tcp(host: named.isEmpty || named == "?" ? node.host ?? "" : named, port: Int(port))
  }

  static func replicas(_ reply: RedisValue, from node: ServerAddress) -> [ServerAddress] {
    guard case .array(let ranges) = reply else { return [] }
    var found: [ServerAddress] = []
    for case .array(let parts) in ranges {
      for replica in parts.dropFirst(3).compactMap({ address($0, from: node) }) where !found.contains(replica)
      {
        found.append(replica)
      }
    }
    return found
  }
}

extension SlotMap {
  /// CRC-16/XMODEM of each byte, by which Redis Cluster assigns keys to slots.
  private static let table: [UInt16] = (0..<256).map { byte in
    (0..<8).reduce(UInt16(byte) << 8) { crc, _ in crc & 0x8000 == 0 ? crc << 1 : crc << 1 ^ 0x1021 }
  }

  private static func slot(ofTag bytes: UnsafeRawBufferPointer) -> Int {
    table.withUnsafeBufferPointer { table in
      var crc: UInt16 = 0
      for byte in bytes { crc = crc << 8 ^ table[Int(UInt8(truncatingIfNeeded: crc >> 8) ^ byte)] }
      return Int(crc) % slotCount
    }
  }

  /// Returns the slot of a key: of its first part in braces that is not empty, else of the whole key.
  static func slot(of key: String) -> Int {
    var tag = Array(key.utf8)
    if let open = tag.firstIndex(of: UInt8(ascii: "{")),
      let close = tag[(open + 1)...].firstIndex(of: UInt8(ascii: "}")), close > open + 1
    {
      tag = Array(tag[(open + 1)..<close])
    }
    return tag.withUnsafeBytes { slot(ofTag: $0) }
  }

  /// Returns a hash tag whose keys are in the slot, by a search of some milliseconds.
  static func tag(of slot: Int) -> String {
    var number = 0
    while self.slot(of: "\(number)") != slot { number += 1 }
    return "\(number)"
  }

  static func slot(of id: RecordID) -> Int {
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Digest256.textLength) { text in
      guard let start = text.baseAddress else { return 0 }
      id.digest.writeText(to: start)
      return slot(ofTag: UnsafeRawBufferPointer(text))
    }
  }
}
