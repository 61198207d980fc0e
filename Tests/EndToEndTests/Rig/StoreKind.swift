/// The stores that the same promises are tested on.
enum StoreKind: String, CaseIterable, Sendable {
  case embedded, redis
}
