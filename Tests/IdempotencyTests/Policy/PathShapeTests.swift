import Idempotency
import NIOCore
import Testing

/// The shapes of paths, of which nothing but words may reach a log.
struct PathShapeTests {
  @Test(arguments: [
    ("/", "/"), ("/v2/orders", "/v2/orders"), ("/orders/4711/lines/8", "/orders/{id}/lines/{id}"),
    ("/orders/6c84fb90-12c4-11e1-840d-7b25c5ee775a", "/orders/{id}"), ("/order-lines/", "/order-lines"),
    ("/Orders.json", "/Orders.json"), ("/api/OrderLines/ABC", "/api/OrderLines/ABC"),
    ("/oauth2/token", "/oauth2/token"), ("/s3/aws4_request", "/s3/aws4_request"),
    // An id, a digest, a token, a mail address, an escape, a key of OData.
    ("/charges/ch_3MmlLrLkdIwHu7ix", "/charges/{id}"), ("/blobs/deadbeefcafe", "/blobs/{id}"),
    ("/t/QWxhZGRpbg", "/t/{id}"), ("/reset/abcdefghijklmnopqrstuvwxyz", "/reset/{id}"),
    ("/users/alice@example.com", "/users/{id}"), ("/a%20b/x", "/{id}/x"), ("/Orders(5)", "/{id}"),
    ("/v123/x", "/{id}/x"), ("/a\u{1B}b", "/{id}"), ("/ä", "/{id}"), ("/SECRETTOKEN", "/{id}"),
    ("/a/b/c/d/e/f/g/h/i/j", "/a/b/c/d/e/f/g/h/**"), ("/a;token=secret/b", "/a/b"),
  ])
  func `ids, tokens and escapes are replaced, words stay`(path: String, shape: String) {
    #expect(PathShape.text(of: ByteBuffer(string: path)) == shape)
  }
}
