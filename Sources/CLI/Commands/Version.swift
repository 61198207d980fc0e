/// The version of this build.
enum Version {
  static let text = "0.1.0"
}
