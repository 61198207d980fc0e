import CFuzzer

/// Runs libFuzzer on one target: `semel-fuzz TARGET [OPTION or CORPUS…]`.
@main
struct Main {
  /// The target that the command line names; libFuzzer's callback can carry nothing.
  private static let target = CommandLine.arguments.dropFirst().first.flatMap(Target.init)

  static func main() {
    guard target != nil else {
      print(Target.allCases.map(\.rawValue).joined(separator: "\n"))
      return
    }
    // libFuzzer sees the command line without the target's name.
    var count = CommandLine.argc - 1
    var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = CommandLine.unsafeArgv + 1
    CommandLine.unsafeArgv[1] = CommandLine.unsafeArgv[0]
    _ = LLVMFuzzerRunDriver(&count, &arguments) { start, count in
      Main.check(UnsafeRawBufferPointer(start: start, count: count))
      return 0
    }
  }

  private static func check(_ bytes: UnsafeRawBufferPointer) {
    if let target, let fault = target.fault(in: Array(bytes)) { fatalError(fault) }
  }
}
