extension RedisLogin {
  /// The end of a connection on which the server has not replied to anything.
  enum EarlyEnd {
    /// The server was silent for the whole time.
    case silence
    /// The server has ended the connection, or has sent something other than a reply.
    case refusal
    /// An error of the connection.
    case failure(any Error)
  }

  /// Returns the question whether the server speaks TLS, for the end of a message about a connection whose end suggests
  /// the other one of the two; empty if it suggests neither.
  ///
  /// - Parameter hasURL: Whether a URL's scheme decides on TLS, and not a member of the settings.
  func tlsQuestion(after end: EarlyEnd, hasURL: Bool) -> String {
    guard tls != nil else {
      // A server with TLS takes a command for a broken handshake, and ends the connection at once.
      if case .silence = end { return "" }
      return "; does it speak TLS? (\(hasURL ? "rediss://" : "tls in the settings"))"
    }
    switch end {
    // A server without TLS waits for the end of the line that it takes a handshake for.
    case .silence: break
    case .refusal: return ""
    // It responds to a handshake that has a line feed with an error in clear.
    case .failure(let error): guard "\(error)".contains("WRONG_VERSION_NUMBER") else { return "" }
    }
    return "; does it speak TLS? (\(hasURL ? "redis://" : "no tls in the settings") if not)"
  }
}
