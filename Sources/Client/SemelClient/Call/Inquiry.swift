import HTTPTypes

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The state of an intent's record at a Semel, which was asked about it without being sent it.
public enum RecordState: Hashable, Sendable {
  /// There is no record of this caller. That does not mean *not executed*: a delivery may be on its way.
  case absent
  case inFlight
  /// Nothing was carried out, or an outcome of which a retry may make another. The next delivery runs.
  case released
  case unknown
  /// The server has forgotten the outcome, and remembers that there was one.
  case expired
  /// The outcome, with the response where the server has kept it.
  case completed(status: Int, Response?)
}

/// The reasons for which a server did not say what became of an intent.
public enum InquiryError: Error, Hashable, Sendable {
  /// The server knows nothing of such questions, or refuses this one.
  case refused(Response)
  case transport(TransportError)
  case credentials(CredentialError)
}

extension Courier {
  /// Asks Semel's outcome endpoint about an intent. `attach` is the time to wait for a delivery that is in flight.
  package func inquire(about intent: Intent, attach: Duration? = nil) async throws(InquiryError)
    -> RecordState
  {
    let state = try await document(about: intent, attach: attach)
    guard case .completed(let status, _) = state else { return state }
    // A second question, for the recorded response itself: 404 where there is none.
    let response = try await ask(about: intent, parameters: ["response=true"])
    let isRecorded = response.fields[.idempotencyStatus]?.hasPrefix("replayed") == true
    return .completed(status: status, isRecorded ? response : nil)
  }

  private func document(about intent: Intent, attach: Duration?) async throws(InquiryError) -> RecordState {
    let wait = attach.map { "attach=\(max(1, $0.components.seconds))s" }
    let response = try await ask(about: intent, parameters: wait.map { [$0] } ?? [])
    let document = try? JSONDecoder().decode(OutcomeDocument.self, from: Data(response.body))
    guard response.status == .ok, let document, let state = document.recordState else {
      throw .refused(response)
    }
    return state
  }

  private func ask(about intent: Intent, parameters: [String]) async throws(InquiryError) -> Response {
    let question =
      ["method=\(intent.request.method.rawValue)", "path=\(intent.request.path.percentEncodedForQuery)"]
      + parameters
    var request = HTTPRequest(
      method: .get, scheme: origin.scheme, authority: origin.authority,
      path: "/.well-known/idempotency/outcome?" + question.joined(separator: "&"),
      headerFields: intent.request.fields)
    request.headerFields[.contentType] = nil
    for name in policy.keyFields { request.headerFields[name] = intent.key.rawValue }
    let verdict: Verdict
    do {
      verdict = try await send(request, body: []) { response in
        var verdict = Verdict([401, 407].contains(response.status.code) ? .credentials : .success)
        verdict.response = response
        return verdict
      }
    } catch {
      switch error {
      case .credentials(let error): throw .credentials(error)
      case .body(let reason, _): preconditionFailure("An inquiry has no body: \(reason)")
      }
    }
    guard let response = verdict.response else {
      throw .transport(verdict.deliveryClass == .notSent ? .notSent("not sent") : .lost("no response"))
    }
    return response
  }
}

/// The document of the outcome endpoint.
private struct OutcomeDocument: Decodable {
  var state: String
  var status: Int?

  var recordState: RecordState? {
    switch state {
    case "absent": .absent
    case "in_flight": .inFlight
    case "released": .released
    case "unknown": .unknown
    case "expired": .expired
    case "completed": status.map { .completed(status: $0, nil) }
    default: nil
    }
  }
}

extension String {
  /// The text as the value of a query's parameter (RFC 3986, section 2.3).
  package var percentEncodedForQuery: String {
    var text = ""
    for byte in utf8 {
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E:
        text.unicodeScalars.append(Unicode.Scalar(byte))
      default:
        let digits = String(byte, radix: 16, uppercase: true)
        text += digits.count == 1 ? "%0\(digits)" : "%\(digits)"
      }
    }
    return text
  }
}
