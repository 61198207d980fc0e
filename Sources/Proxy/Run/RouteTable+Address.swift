import Idempotency
import NIOCore
import Wire

extension MessageHead {
  /// The path and the host that the request names, in the form in which they are matched.
  public func addressed(reading: PathReading = .normal) throws(Problem) -> (RequestTarget, RequestHost?) {
    do throws(WireError) {
      // An http URI has a host (RFC 9110, section 4.2.1); HTTP/1.0 alone may leave it out.
      guard minorVersion == 0 || first(.host)?.valueRange.isEmpty != true else { throw .badHost }
      let target = try RequestTarget(self, reading: reading)
      return (target, try RequestHost(of: self, target: target))
    } catch {
      throw .unreadable(error)
    }
  }
}

extension RouteTable {
  /// The path and the host of a request. Encoded slashes are characters of their segments where the request meets, by
  /// this reading, a route that keeps them: the route's owner says that its backend reads them so.
  ///
  /// - Parameters:
  ///   - operation: The GraphQL operation that the body selects, if it has been read for that.
  ///   - form: The methods that a form in the body names, if it has been read for that.
  public func address(
    of head: MessageHead, operation: GraphQLOperation = .unread, form: MethodParameter.Form = .unread
  ) throws(Problem) -> (RequestTarget, RequestHost?) {
    do throws(Problem) {
      return try head.addressed()
    } catch {
      guard let kept = addressWithSlashes(of: head, operation, form) else { throw error }
      return kept
    }
  }

  @inline(never)
  private func addressWithSlashes(
    of head: MessageHead, _ operation: GraphQLOperation, _ form: MethodParameter.Form
  ) -> (RequestTarget, RequestHost?)? {
    guard keepsSlashes, let (target, host) = try? head.addressed(reading: .keepingSlashes),
      target.form != .authority
    else { return nil }
    let name = host?.name ?? ByteBuffer()
    let route: Route?
    if let preflight = preflight(head) {
      route = choice(for: preflight, head: head, host: name, path: target.path).announced
    } else {
      let choice = try? choice(
        for: head, host: name, path: target.path, query: target.query, operation: operation, form: form)
      route = choice?.route
    }
    return route?.policy.keepsSlashes == true ? (target, host) : nil
  }
}
