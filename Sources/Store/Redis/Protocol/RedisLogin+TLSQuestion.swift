extension RedisLogin {
  /// The end of a connection on which the server has not replied to anything.
  enum EarlyEnd {
    case silence
    /// The server has ended the connection, or has sent something other than a reply.
    case refusal
    case failure(any Error)
  }

  /// Returns the question whether the server speaks TLS, for a message about a connection whose end suggests the other
  /// one of the two; empty otherwise. With `hasURL` a URL's scheme decides on TLS.
  func tlsQuestion(after end: EarlyEnd, hasURL: Bool) -> String {
    guard tls != nil else {
      // A server with TLS takes a command for a broken handshake, and ends the connection at once.
      if case .silence = end { return "" }
      return "; does it speak TLS? (\(hasURL ? "rediss://" : "tls in the settings"))"
    }
    switch end {
    case .silence: break
    case .refusal: return ""
    // It responds to a handshake with an error in clear.
    case .failure(let error): guard "\(error)".contains("WRONG_VERSION_NUMBER") else { return "" }
    }
    return "; does it speak TLS? (\(hasURL ? "redis://" : "no tls in the settings") if not)"
  }
}
