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

  /// The method for the log, the journal and spans, which keep many: a client's own may be as long as its line.
  var loggedMethod: String {
    guard method == .other else { return methodText }
    return String(methodText.prefix(32))
  }

  private static let formsOfHTTP: [StaticString] = ["h2", "h3", "http", "tls"]

  /// Whether every requested protocol is something other than HTTP in any form, or TLS (RFC 9110, section 7.8).
  var upgradesLeaveHTTP: Bool {
    readList(of: FieldNameSet(.upgrade)) { name in
      !Self.formsOfHTTP.contains { form in
        let beginning = UnsafeRawBufferPointer(rebasing: name.prefix(form.utf8CodeUnitCount))
        return ASCII.equalsIgnoringCase(beginning, form)
      }
    }
  }
}

extension RequestTarget {
  /// Path and query as they are forwarded.
  var text: String {
    guard let query else { return String(buffer: forwarded) }
    return String(buffer: forwarded) + "?" + String(buffer: query)
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
