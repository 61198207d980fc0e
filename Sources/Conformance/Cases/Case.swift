/// One requirement that a check examines.
public struct Case: Sendable {
  public var section: Section
  /// The case's own name: lower case, with hyphens.
  public var name: String
  /// The requirement as a sentence.
  public var title: String
  public var level: Level
  public var needs: Set<Need>
  public var script: Script
  /// Whether the case is left out unless `--only` names it, because it sends so many requests.
  public var isCostly = false
  public var judge: @Sendable (Evidence) -> Finding

  /// The case, left out unless `--only` names it.
  var costly: Case {
    var copy = self
    copy.isCostly = true
    return copy
  }

  /// The name that reports and `--only` know the case by.
  public var id: String { "\(section.rawValue)/\(name)" }
}

/// The sections of the draft, and what it does not cover.
public enum Section: String, CaseIterable, Sendable {
  case syntax = "2.1"
  case uniqueness = "2.2"
  case validity = "2.3"
  case fingerprint = "2.4"
  case responsibilities = "2.5"
  case enforcement = "2.6"
  case errors = "2.7"
  case security = "5"
  case beyond

  public var title: String {
    switch self {
    case .syntax: "Syntax"
    case .uniqueness: "Uniqueness"
    case .validity: "Validity and expiry"
    case .fingerprint: "Fingerprint"
    case .responsibilities: "Responsibilities"
    case .enforcement: "Enforcement"
    case .errors: "Errors"
    case .security: "Security"
    case .beyond: "Beyond the draft"
    }
  }
}

/// The strength of a requirement (RFC 2119), which decides what a violation is called.
public enum Level: String, CaseIterable, Sendable, Comparable {
  case must, should, may

  public static func < (left: Level, right: Level) -> Bool {
    left != right && (left == .must || right == .may)
  }
}

/// A part of the setup without which a case cannot be run or judged.
public enum Need: Hashable, Sendable, CaseIterable {
  case oracle, otherPayload, otherCaller, credentials, slowRequest, failingRequest, jsonPayload,
    multipartPayload, ttl

  /// The reason for leaving a case out.
  public var reason: String {
    switch self {
    case .oracle: "needs an oracle of executions (--count-url, --list-url or --id)"
    case .otherPayload: "needs a second payload (--vary)"
    case .otherCaller: "needs --other-caller"
    case .credentials: "needs a --header with credentials"
    case .slowRequest: "needs --slow-request"
    case .failingRequest: "needs --failing-request"
    case .jsonPayload: "needs a payload that is a JSON object"
    case .multipartPayload: "needs a payload of multipart/form-data (--header 'Content-Type: …')"
    case .ttl: "needs --ttl"
    }
  }
}

/// The result of judging evidence, before the case's level is considered.
public enum Finding: Equatable, Sendable {
  case met(String = "")
  case violated(String)
  /// A behaviour that is neither required nor forbidden.
  case observed(String)
  case undecided(String)

  /// The first finding that is not `met`, or else the first one: several conditions as one.
  public static func all(_ findings: Finding...) -> Finding {
    for finding in findings {
      if case .violated = finding { return finding }
    }
    for finding in findings {
      guard case .met = finding else { return finding }
    }
    return findings.first ?? .met()
  }
}

/// The verdict on a case.
public struct Verdict: Equatable, Sendable {
  public enum Kind: String, CaseIterable, Sendable {
    case pass, fail, warn, info, skip, inconclusive
  }

  public var kind: Kind
  public var reason: String

  public init(_ kind: Kind, _ reason: String = "") {
    self.kind = kind
    self.reason = reason
  }

  /// The verdict by a finding: a violated MUST fails, a violated SHOULD warns, a violated MAY is reported.
  public init(_ finding: Finding, at level: Level) {
    switch finding {
    case .met(let note): self.init(.pass, note)
    case .observed(let behaviour): self.init(.info, behaviour)
    case .undecided(let reason): self.init(.inconclusive, reason)
    case .violated(let reason):
      switch level {
      case .must: self.init(.fail, reason)
      case .should: self.init(.warn, reason)
      case .may: self.init(.info, reason)
      }
    }
  }
}

/// A case with its verdict, and the evidence that it was judged by.
public struct CaseResult: Sendable {
  public var examined: Case
  public var verdict: Verdict
  public var evidence: Evidence?

  public init(_ examined: Case, _ verdict: Verdict, _ evidence: Evidence? = nil) {
    self.examined = examined
    self.verdict = verdict
    self.evidence = evidence
  }
}

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
