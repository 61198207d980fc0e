public import HTTPTypes

/// The settings of retries.
public struct Policy: Hashable, Sendable {
  /// The limits of one series of deliveries.
  public struct Limits: Hashable, Sendable {
    /// The attempts that count. A wait that the server asked for, a held credential and a delivery elsewhere cost none.
    public var maxAttempts: Int
    /// The pauses between attempts.
    public var backoff: Backoff
    /// The time after which no delivery begins any more.
    public var maxDuration: Duration

    /// The limits of a series.
    public init(maxAttempts: Int, backoff: Backoff, maxDuration: Duration) {
      self.maxAttempts = maxAttempts
      self.backoff = backoff
      self.maxDuration = maxDuration
    }
  }

  /// The limits of a plain call, which a user waits for.
  public var call = Limits(maxAttempts: 5, backoff: Backoff(max: .seconds(20)), maxDuration: .seconds(60))
  /// The limits of a queued intent, from when it was enqueued.
  public var queue = Limits(
    maxAttempts: 250, backoff: Backoff(max: .seconds(3600)), maxDuration: .seconds(7 * 86_400))
  /// The time for one delivery. It is longer than the server's own time-out (30 s by default): hanging up earlier stops
  /// nothing.
  public var attemptTimeout = Duration.seconds(40)
  /// The upper bound of a wait that a server may ask for.
  public var maxRetryAfter = Duration.seconds(3600)
  /// The time for which the server remembers an intent, from the first delivery that may have been carried out: Semel's
  /// `retention`. Later a delivery might run it again, and none is sent. `Idempotency-Expires` counts before it.
  public var keyLifetime = Duration.seconds(86_400)
  /// The fields that carry the key.
  public var keyFields: [HTTPField.Name] = [.idempotencyKey]
  /// Exceptions from the table of classes.
  public var rules: [ClassRule] = []
  /// The largest response that is kept. A larger one counts as lost: the retry gets it again.
  public var maxResponseBody = 8 << 20
  /// The largest body of a request.
  public var maxRequestBody = 1 << 20

  /// The default settings.
  public init() {}

  /// The default settings.
  public static let standard = Policy()
}
