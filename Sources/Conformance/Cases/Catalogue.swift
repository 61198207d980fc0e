/// All cases, in the order of the draft's sections.
public enum Catalogue {
  public static let cases: [Case] =
    syntax + uniqueness + validity + fingerprint + responsibilities + enforcement + errors + security + beyond

  /// A key reused for another payload, twice, and then the first payload again.
  static let reuse = Script(
    .deliver(Delivery()), .deliver(Delivery(.fresh("a"), .other)), .deliver(Delivery(.fresh("a"), .other)),
    .deliver(Delivery()))

  static func twice(_ values: String...) -> Script {
    let delivery = Delivery(.values(values))
    return Script(.deliver(delivery), .deliver(delivery))
  }
}

extension Section {
  /// A case of this section.
  func must(
    _ name: String, _ title: String, needs: Set<Need> = [], _ script: Script,
    _ judge: @escaping @Sendable (Evidence) -> Finding
  ) -> Case {
    Case(section: self, name: name, title: title, level: .must, needs: needs, script: script, judge: judge)
  }

  func should(
    _ name: String, _ title: String, needs: Set<Need> = [], _ script: Script,
    _ judge: @escaping @Sendable (Evidence) -> Finding
  ) -> Case {
    Case(section: self, name: name, title: title, level: .should, needs: needs, script: script, judge: judge)
  }

  func may(
    _ name: String, _ title: String, needs: Set<Need> = [], _ script: Script,
    _ judge: @escaping @Sendable (Evidence) -> Finding
  ) -> Case {
    Case(section: self, name: name, title: title, level: .may, needs: needs, script: script, judge: judge)
  }
}
