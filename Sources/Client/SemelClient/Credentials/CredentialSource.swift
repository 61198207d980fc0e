public import HTTPTypes

/// The credentials of an application: where they come from, and how they are renewed.
///
/// They are applied to each delivery when it is sent, and are never stored with an intent. The key stays the same over
/// every renewal.
///
/// To Semel, a caller is part of an intent's identity. If the operator has chosen the whole `Authorization` field for
/// it, a refreshed token is *another caller*, and the retry of an intent runs again. Ask for a part that stays, such as
/// `jwt:sub`, or send a device's id in a field of its own. See <doc:Choosing-what-identifies-the-caller>.
public protocol CredentialSource: Sendable {
  /// The fields of the credentials in use, such as `Authorization`.
  func current() async throws -> HTTPFields
  /// New credentials in the place of some that the server has refused.
  ///
  /// No second refresh begins before this one has ended, however many calls need it. They wait for it even if they are
  /// cancelled, so give it a time-out. It must not use a client of these credentials itself, which would wait for it.
  func refresh(refused: HTTPFields) async throws -> HTTPFields
}

/// The reasons for which a call has no credentials that the server accepts.
public enum CredentialError: Error, Hashable, Sendable {
  /// The source has no credentials, or its refresh failed: its own description.
  case unavailable(String)
  /// The server refuses the credentials that it was given, after a refresh as before it.
  case refused
}

/// The credentials of one client, refreshed by one task at a time.
package actor CredentialKeeper {
  package struct Credential: Sendable {
    package let fields: HTTPFields
    package let generation: Int
  }

  private let source: any CredentialSource
  private let elapsed: @Sendable () -> Duration
  private var junction = CredentialJunction()
  private var fields: HTTPFields?
  private var refresh: Task<Result<HTTPFields, CredentialError>, Never>?
  /// The first reading of the source, which is shared as a refresh is.
  private var reading: Task<Result<HTTPFields, CredentialError>, Never>?

  package init(_ source: any CredentialSource, clock: any Clock<Duration>) {
    self.source = source
    elapsed = clock.stopwatch()
  }

  /// The credentials for a call that is about to be sent, which waits for a refresh that is under way.
  package func current() async throws(CredentialError) -> Credential {
    if junction.admit() == .join { _ = await refresh?.value }
    if let fields { return Credential(fields: fields, generation: junction.generation) }
    let task = reading ?? Task { await read() }
    reading = task
    return try await credential(of: task)
  }

  /// The credentials to send a call again with that the server refused.
  package func replacement(for refused: Credential) async throws(CredentialError) -> Credential {
    switch junction.refused(generation: refused.generation, now: elapsed()) {
    case .resend: return try await current()
    case .giveUp: throw .refused
    case .join:
      guard let refresh else { preconditionFailure("A refresh is under way that nobody began.") }
      return try await credential(of: refresh)
    case .refresh:
      let task = Task { await renew(refused.fields) }
      refresh = task
      return try await credential(of: task)
    }
  }

  private func credential(
    of task: Task<Result<HTTPFields, CredentialError>, Never>
  ) async throws(CredentialError) -> Credential {
    let fields = try await task.value.get()
    return Credential(fields: self.fields ?? fields, generation: junction.generation)
  }

  /// A refresh with all that it changes, so that each call that waited for it finds it done.
  private func renew(_ refused: HTTPFields) async -> Result<HTTPFields, CredentialError> {
    let outcome = await Self.outcome { try await source.refresh(refused: refused) }
    if case .success(let renewed) = outcome { fields = renewed }
    junction.refreshEnded(isSuccess: (try? outcome.get()) != nil)
    refresh = nil
    return outcome
  }

  private func read() async -> Result<HTTPFields, CredentialError> {
    let outcome = await Self.outcome { try await source.current() }
    if case .success(let read) = outcome, fields == nil { fields = read }
    reading = nil
    return outcome
  }

  private static func outcome(
    _ body: () async throws -> HTTPFields
  ) async -> Result<HTTPFields, CredentialError> {
    do {
      return .success(try await body())
    } catch let error as CredentialError {
      return .failure(error)
    } catch {
      return .failure(.unavailable("\(error)"))
    }
  }
}
