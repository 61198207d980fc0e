/// Objects that are over, and must not be freed in debug: NIO holds it against a promise to end without a value, and a process
/// that is killed keeps none of its promises.
enum Graves {
  nonisolated(unsafe) private static var kept: [Any] = []

  /// Keeps something in a debug build.
  static func bury(_ thing: @autoclosure () -> Any) {
    #if DEBUG
      kept.append(thing())
    #endif
  }
}
