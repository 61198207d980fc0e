import Idempotency
import NIOCore
import Wire

extension MessageHead {
  /// The request's method in the client's spelling.
  var methodText: String {
    switch method {
    case .get: "GET"
    case .head: "HEAD"
    case .post: "POST"
    case .put: "PUT"
    case .patch: "PATCH"
    case .delete: "DELETE"
    case .options, .trace, .connect, .other: string(methodRange)
    }
  }

  /// Whether another protocol is wanted. An offer of `h2c` is left alone, as RFC 9113 has it: some clients make it
  /// with every first request.
  var requestsUpgrade: Bool {
    guard names.contains(.upgrade) else { return false }
    return fields.contains { field in
      field.name == .upgrade && !withBytes(field.valueRange) { ASCII.equalsIgnoringCase($0, "h2c") }
    }
  }

  /// Whether every requested protocol is something other than HTTP in any form, or TLS (RFC 9110, section 7.8).
  var upgradesLeaveHTTP: Bool {
    fields.allSatisfy { field in
      guard field.name == .upgrade else { return true }
      return string(field.valueRange).lowercased().split(separator: ",").allSatisfy { element in
        let name = element.drop { $0 == " " || $0 == "\t" }
        return !["h2", "h3", "http", "tls"].contains { name.hasPrefix($0) }
      }
    }
  }

  /// Whether the body is of gRPC: `application/grpc`, and all that begins so. Its failures come with status 200.
  var isGRPC: Bool {
    guard let type = first(.contentType) else { return false }
    return withBytes(type.valueRange) { value in
      let name: StaticString = "application/grpc"
      return value.count >= name.utf8CodeUnitCount
        && ASCII.equalsIgnoringCase(UnsafeRawBufferPointer(rebasing: value[..<name.utf8CodeUnitCount]), name)
    }
  }
}

extension RequestTarget {
  /// Path and query as they are forwarded.
  var text: String {
    guard let query else { return String(buffer: path) }
    return String(buffer: path) + "?" + String(buffer: query)
  }
}

extension UpstreamSettings {
  /// The value of `Host` if the client sent none (HTTP/1.0).
  var authority: String {
    switch address {
    case .tcp: address.description
    case .unix: "localhost"
    }
  }
}
