@main
struct Semel {
  static func main() {}
}
