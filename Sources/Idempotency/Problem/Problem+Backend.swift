// Refusals caused by the backend or by overload.
extension Problem {
  /// The backend was not reached, and the request was certainly not executed.
  public static var upstreamUnreachable: Problem {
    Problem(
      .upstreamUnreachable, status: 502,
      detail:
        "Send the same request with the same key again; the backend was not reached and this delivery was not executed.",
      isRetryable: true)
  }

  /// The backend has refused the request by a response of class *retry*, of which only the status can be read.
  public static var refusedForNow: Problem {
    Problem(
      .upstreamUnreachable, status: 502,
      detail:
        "Send the same request with the same key again; the backend refused it for now, by a response that cannot be read.",
      isRetryable: true)
  }

  /// The reason why no more requests are accepted.
  public enum Overload: Hashable, Sendable, CaseIterable {
    /// A limit of requests, bodies or waiters has been reached.
    case busy
    /// All connections to the backend are in use.
    case backend
    /// The process is shutting down.
    case draining
  }

  public static func overloaded(_ overload: Overload) -> Problem {
    let detail =
      switch overload {
      case .busy:
        "Send the same request with the same key again later; too much is in progress and this delivery was not executed."
      case .backend:
        "Send the same request with the same key again later; all connections to the backend are in use and this delivery was not executed."
      case .draining:
        "Send the same request with the same key again on a new connection; this server is shutting down and did not execute this delivery."
      }
    return Problem(
      .overloaded, status: 503, detail: detail, isRetryable: true, retryAfter: defaultPause.retryAfterSeconds)
  }
}
