import HTTPTypes
import Hummingbird

/// An operation of the admin API, registered by `AdminRoutes` alone, so that each has its description.
enum AdminOperation: String, CaseIterable, Sendable {
  case getLiveness, getReadiness, getMetrics, getConfiguration, getDescription
  case listRecords, countRecords, getRecord, forgetRecord, resolveRecord, findRecord, searchRecords, putRecord
  case listRequests, listAudit

  /// The credentials that an operation requires.
  enum Access { case open, read, operate }

  var method: HTTPRequest.Method {
    switch self {
    case .resolveRecord, .findRecord, .searchRecords, .putRecord: .post
    case .forgetRecord: .delete
    default: .get
    }
  }

  var path: String {
    switch self {
    case .getLiveness: "/livez"
    case .getReadiness: "/readyz"
    case .getMetrics: "/metrics"
    case .getConfiguration: "/v1/config"
    case .getDescription: "/v1/openapi.json"
    case .listRecords: "/v1/records"
    case .countRecords: "/v1/record-counts"
    case .getRecord, .forgetRecord: "/v1/records/{id}"
    case .resolveRecord: "/v1/records/{id}/resolve"
    case .findRecord: "/v1/records/find"
    case .searchRecords: "/v1/records/search"
    case .putRecord: "/v1/records/put"
    case .listRequests: "/v1/requests"
    case .listAudit: "/v1/audit"
    }
  }

  var access: Access {
    switch self {
    case .getLiveness, .getReadiness: .open
    case .forgetRecord, .resolveRecord, .putRecord: .operate
    default: .read
    }
  }
}

/// The way to register operations of the API, each under its path and behind its access rule.
struct AdminRoutes {
  let router: RouterGroup<AdminContext>
  let access: AdminAccess

  func on(
    _ operation: AdminOperation,
    _ handler: @escaping @Sendable (Request, AdminContext) async throws -> Response
  ) {
    guard operation.access != .open else {
      router.on(RouterPath(operation.path), method: operation.method, use: handler)
      return
    }
    router.group().add(middleware: TokenMiddleware(access: access, needed: operation.access))
      .on(RouterPath(operation.path), method: operation.method, use: handler)
  }
}
