import Idempotency
import NIOCore
import Wire

extension Route {
  /// A protected route with the defaults of the contract, changed as a test needs it.
  static func sample(_ change: (inout RoutePolicy) -> Void = { _ in }) -> Route {
    var policy = RoutePolicy(
      name: "create-order", match: RouteMatch(),
      upstream: UpstreamSettings(name: "orders", address: .tcp(host: "127.0.0.1", port: 9000)))
    change(&policy)
    return Route(policy: policy, index: 0)
  }
}

extension Claim {
  static func sample(
    attempt: Int = 1, followsUnknown: Bool = false, onlyRejectedSoFar: Bool = true,
    uncountedAttempts: Int = 0,
    fingerprint: Fingerprint = Fingerprint(recipe: Recipe(), digest: .sample(2))
  ) -> Claim {
    Claim(
      id: RecordID(.sample(1)), owner: OwnerToken(high: 1, low: 2),
      fingerprint: fingerprint, attempt: attempt,
      firstSeen: StoreInstant(milliseconds: 1000), followsUnknown: followsUnknown,
      onlyRejectedSoFar: onlyRejectedSoFar, uncountedAttempts: uncountedAttempts, lease: .seconds(30),
      unknownRetention: .seconds(60), remember: .seconds(60), requestedAt: BootInstant(nanoseconds: 0))
  }
}

extension ClaimRequest {
  static func sample(
    owner: OwnerToken = OwnerToken(high: 1, low: 2),
    fingerprint: Fingerprint = Fingerprint(recipe: Recipe(), digest: .sample(2)),
    unusedRelease: Release = .remembered
  ) -> ClaimRequest {
    ClaimRequest(
      id: RecordID(.sample(1)), owner: owner, fingerprint: fingerprint, lease: .seconds(30), takeOver: .never,
      unknownRetention: .seconds(60), remember: .seconds(60), unusedRelease: unusedRelease)
  }
}

extension CompletedExchange {
  static func sample(
    status: Int, steering: Steering = Steering(), isDelete: Bool = false, isRelayed: Bool = false,
    isBesideUnknown: Bool = false
  ) -> CompletedExchange {
    CompletedExchange(
      status: status, steering: steering, isDelete: isDelete, isRelayed: isRelayed,
      isBesideUnknown: isBesideUnknown)
  }
}

extension Digest256 {
  /// 32 times the same byte.
  static func sample(_ byte: UInt8) -> Digest256 {
    guard let digest = Digest256(Array(repeating: byte, count: 32)) else {
      preconditionFailure("32 bytes make a digest")
    }
    return digest
  }
}

extension CompletedRecord {
  static func sample(_ outcome: Outcome? = nil) -> CompletedRecord {
    let response = RecordedResponse(
      status: 201, fields: ByteBuffer(string: "Content-Type: text/plain\r\n"),
      body: ByteBuffer(string: "made"))
    return CompletedRecord(
      outcome: outcome ?? .whole(response), recordedAt: StoreInstant(milliseconds: 1000),
      expiresAt: StoreInstant(milliseconds: 9000), remaining: 8000, attempt: 1)
  }
}
