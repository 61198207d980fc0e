import Wire

extension Route {
  /// Refuses requests whose exchange cannot be recorded, and those whose `Connection` field hides from the backend a
  /// field of the key or the caller.
  public func refuseUnprotectable(_ head: MessageHead, _ finding: KeyFinding) throws(Problem) {
    if finding != .missing || policy.idempotency != .optional {
      guard !head.requestsUpgrade else { throw .notImplemented }
      guard !head.isGRPC else { throw .grpcNotProtected }
    }
    guard head.connectionNamesMore else { return }
    for name in identifyingFields where head.connectionNames(name) {
      throw .badRequest(.connectionNamesIdentity)
    }
  }
}

extension MessageHead {
  /// Whether another protocol is wanted. An offer of `h2c` is left alone, as RFC 9113 has it: some clients make it
  /// with every first request.
  public var requestsUpgrade: Bool {
    guard names.contains(.upgrade) else { return false }
    return fields.contains { field in
      field.name == .upgrade && !withBytes(field.valueRange) { ASCII.equalsIgnoringCase($0, "h2c") }
    }
  }

  /// Whether the body is of gRPC: `application/grpc`, and all that begins so. Its failures come with status 200.
  public var isGRPC: Bool {
    guard let type = first(.contentType) else { return false }
    return withBytes(type.valueRange) { value in
      let name: StaticString = "application/grpc"
      return value.count >= name.utf8CodeUnitCount
        && ASCII.equalsIgnoringCase(UnsafeRawBufferPointer(rebasing: value[..<name.utf8CodeUnitCount]), name)
    }
  }
}
