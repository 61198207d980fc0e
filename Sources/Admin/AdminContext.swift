import Hummingbird
import NIOCore

/// What is known of a request to the operator's listener.
struct AdminContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  /// Who asks, for the audit line.
  let peer: String

  init(source: ApplicationRequestContextSource) {
    coreContext = .init(source: source)
    peer = source.channel.remoteAddress?.ipAddress ?? "unknown"
  }
}
