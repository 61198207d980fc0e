import Idempotency
import NIOCore
import Testing

/// The outcomes that every store keeps, and their ages.
struct StoreOutcomeTests {
  /// Responses that have tripped stores: binary, empty, large, with trailers.
  static let responses: [(String, RecordedResponse)] = [
    (
      "binary",
      RecordedResponse(
        status: 200, fields: ByteBuffer(bytes: Array("X-Bin: ".utf8) + [0x80, 0xFF, 0x09] + [13, 10]),
        body: ByteBuffer(bytes: (0..<1024).map { UInt8(truncatingIfNeeded: $0) }),
        trailers: ByteBuffer(bytes: Array("X-Sum: ".utf8) + [0xC3, 0x28, 13, 10]))
    ),
    ("empty", RecordedResponse(status: 204, fields: ByteBuffer(), body: ByteBuffer())),
    (
      "empty body with trailers",
      RecordedResponse(
        status: 200, fields: ByteBuffer(string: "A: \r\n"), body: ByteBuffer(),
        trailers: ByteBuffer(string: "B: c\r\n"))
    ),
    (
      "protocol bytes",
      RecordedResponse(
        status: 599, fields: ByteBuffer(string: "A: $-1\r\n"),
        body: ByteBuffer(string: "*1\r\n$4\r\nQUIT\r\n\0'\""))
    ),
    (
      "large and binary, with trailers",
      RecordedResponse(
        status: 201, fields: ByteBuffer(string: "Location: /v1/orders/7\r\n"),
        body: ByteBuffer(bytes: (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 7) }),
        trailers: ByteBuffer(string: "X-Sum: 7\r\n"))
    ),
    (
      "one mebibyte",
      RecordedResponse(
        status: 201, fields: ByteBuffer(string: "A: b\r\n"),
        body: ByteBuffer(string: String(repeating: "0123456789abcdef", count: 1 << 16)))
    ),
  ]

  @Test(arguments: StoreUnderTest.all)
  func `a state is read without its response`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store, other async throws in
      for (name, response) in Self.responses {
        let claim = try await store.completed(with: Samples.completion(.whole(response)))
        for handle in [store, other] {
          let record = try await handle.find(claim.id, reading: .state).completedRecord
          #expect(record?.outcome == .statusOnly(status: response.status, location: nil), "\(name)")
          #expect(record?.attempt == 1, "\(name)")
          // Others do not get what was read so.
          #expect(try await handle.find(claim.id).completedRecord?.outcome == .whole(response), "\(name)")
        }
      }
      #expect(try await store.find(Samples.id(), reading: .state) == .absent)
      let open = try await store.granted(Samples.request())
      #expect(try await store.find(open.id, reading: .state).name == .inFlight)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `a response is returned byte for byte`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store, other async throws in
      for (name, response) in Self.responses {
        let claim = try await store.completed(with: Samples.completion(.whole(response)))
        for handle in [store, other] {
          let found = try await handle.find(claim.id).completedRecord
          #expect(found?.outcome == .whole(response), "\(name)")
          let outcome = try await handle.claim(Samples.again(claim))
          guard case .taken(.completed(let record)) = outcome else { throw Unexpected(what: name) }
          #expect(record.outcome == .whole(response), "\(name)")
        }
      }
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `a slice of a larger buffer is kept as the slice`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store async throws in
      var whole = ByteBuffer(string: "before|body|after")
      whole.moveReaderIndex(forwardBy: 7)
      let body = whole.readSlice(length: 4)!
      let response = RecordedResponse(status: 200, fields: ByteBuffer(), body: body)
      let claim = try await store.completed(with: Samples.completion(.whole(response)))
      let record = try await store.find(claim.id).completedRecord
      #expect(record?.outcome == .whole(response))
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `the remains of a response that was not kept are returned`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store, other async throws in
      for location in [nil, "", "/v1/orders/7?a=ü"] {
        let outcome = Outcome.statusOnly(status: 201, location: location)
        let claim = try await store.completed(with: Samples.completion(outcome))
        #expect(try await other.find(claim.id).completedRecord?.outcome == outcome)
      }
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `past retention the tombstone remains, then nothing`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store, other async throws in
      let claim = try await store.completed(with: Samples.completion(retention: 30, remember: .seconds(60)))
      try await store.until(claim.id) { $0 == .expired(attempt: 1) }
      #expect(try await store.claim(Samples.again(claim)) == .taken(.expired(attempt: 1)))
      #expect(try await other.claim(Samples.again(claim)) == .taken(.expired(attempt: 1)))
      #expect(try await store.complete(claim, with: Samples.completion()).outcome == .done)
      #expect(try await store.renew(claim) == .done)
      #expect(try await store.markUnknown(claim) == .done)
      #expect(try await store.release(claim, .deleted).lost == .expired)
      #expect(try await store.find(claim.id) == .expired(attempt: 1))
      let short = try await store.completed(with: Samples.completion(retention: 10, remember: 30))
      try await other.until(short.id) { $0 == .absent }
      #expect(try await store.granted(Samples.changed(short)).attempt == 1)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `a record is remembered at least for its retention`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store async throws in
      let claim = try await store.completed(with: Samples.completion(retention: .seconds(60), remember: 1))
      let first = try await store.find(claim.id).completedRecord
      try await store.until(claim.id) {
        guard let left = $0.completedRecord?.remaining, let first else { return false }
        return left < first.remaining - 10
      }
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `a released record is remembered, then absent`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store async throws in
      let claim = try await store.granted(Samples.request(remember: 30))
      #expect(try await store.release(claim, .remembered) == .done)
      try await store.until(claim.id) { $0 == .absent }
      #expect(try await store.granted(Samples.changed(claim)).attempt == 1)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `a claim whose owner vanished goes through unknown and tombstone to nothing`(
    _ kind: StoreUnderTest
  ) async throws {
    try await kind.run { store async throws in
      let request = Samples.request(lease: 60, unknownRetention: 60, remember: 60)
      let claim = try await store.granted(request)
      var met: [Standing.Name] = []
      try await store.until(claim.id) {
        if met.last != $0.name { met.append($0.name) }
        return $0 == .absent
      }
      // A slow machine may miss a state, but never meets one out of order.
      let order: [Standing.Name] = [.inFlight, .unknown, .expired, .absent]
      #expect(met == order.filter(met.contains))
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `unlimited spans do not overflow`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store async throws in
      let century = Milliseconds.seconds(100 * 365 * 24 * 3600)
      let claim = try await store.completed(
        Samples.request(lease: century, unknownRetention: century, remember: century),
        with: Samples.completion(retention: century, remember: century))
      #expect(try await store.find(claim.id).name == .completed)
    }
  }
}
