import Idempotency
import Settings
import Testing

struct EnvironmentTests {
  private let environment = [
    "PORT": "9001", "EMPTY": "", "REDIS_PASSWORD": "p%40ss", "N_1": "3", "EVIL": "x\nworkers: 9",
  ]

  @Test(arguments: [
    ("workers: ${N_1}", 3), ("workers: \"${N_1}\"", 3), ("workers: ${NONE:-2}", 2),
    ("workers: ${EMPTY:-4}", 4),
    ("workers: 1${NONE:-}${N_1}", 13),
  ]) func `a reference stands for its value or its default`(text: String, workers: Int) throws {
    #expect(try load(upstream + text, environment: environment).workers == workers)
  }

  @Test(arguments: [
    ("a$$b", "a$b"), ("$${PORT}", "${PORT}"), ("$$$$", "$$"), ("a$b", "a$b"), ("x$", "x$"),
    ("${PORT}/${N_1}", "9001/3"), ("${NONE:-a:-b}", "a:-b"), ("${EVIL}", "x\nworkers: 9"),
  ]) func `a text is substituted, and never parsed as YAML again`(written: String, path: String) throws {
    let settings = try load(upstream + "store: {path: \"\(written)\"}", environment: environment)
    #expect(settings.store.place == .embedded(path: path))
    #expect(settings.workers == 0)
  }

  @Test func `secrets come from the environment`() throws {
    let text = upstream + "store: {kind: redis, url: \"redis://:${REDIS_PASSWORD}@h\"}"
    guard case .redis(let redis) = try load(text, environment: environment).store.place else {
      Issue.record("not a Redis")
      return
    }
    #expect(redis.login.password == "p@ss")
    #expect(redis.login.user == nil)
  }

  @Test(arguments: [
    ("${NONE}", "the environment has no NONE: set it, or write ${NONE:-default}"),
    ("${NONE", "has a ${ without its }; write ${NAME}, or $${ for the characters themselves"),
    ("${}", "has a reference that is neither ${NAME} nor ${NAME:-default}; $${ stands for ${ itself"),
    ("${1A}", "has a reference that is neither ${NAME} nor ${NAME:-default}; $${ stands for ${ itself"),
    ("${PORT-1}", "has a reference that is neither ${NAME} nor ${NAME:-default}; $${ stands for ${ itself"),
    (
      "${PORT:-${OTHER:-8}}",
      "has a reference within a reference; write ${NAME:-default} with a default that is plain text"
    ),
    ("${PORT:?x}", "has a reference that is neither ${NAME} nor ${NAME:-default}; $${ stands for ${ itself"),
  ]) func `a reference with a fault is refused`(written: String, message: String) {
    let text = upstream + "store: {path: \"\(written)\"}"
    #expect(issues(text, environment: environment) == ["2:15: store.path: \(message)"])
  }

  @Test func `a command without connections does without what only these need`() throws {
    func load(_ text: String, isOffline: Bool) -> Result<Settings, SettingsErrors> {
      Settings.load(text: text, file: "f", environment: [:], isOffline: isOffline)
    }
    let route = "name: r, caller: {parts: [address]}, on_unknown: reconcile"
    let query = "reconcile: {path: \"/o/{request_id}\", headers: {Authorization: \"Bearer ${TOKEN}\"}}"
    let text =
      upstream + "store: {kind: redis, url: \"redis://u:${PASSWORD}@h\"}\nroutes: [{\(route), \(query)}]\n"
    #expect(issues(text).count == 2)
    let settings = try load(text, isOffline: true).get()
    #expect(settings.routes.first?.reconcile?.path == "/o/{request_id}")
    // The name of an address tells nothing of who reaches it.
    let admin = try load(upstream + "admin: {address: \"${POD_IP}:8081\"}\n", isOffline: true).get()
    #expect(admin.admin?.port == 8081)
    // A name that is not fit for the member, and members on which a request's record depends.
    for (good, bad, path) in [
      ("redis://u:${PASSWORD}@h", "${URL}", "store.url"),
      ("name: r,", "name: \"${NAME}\",", "routes[0].name"),
      ("[address]", "[\"${PART}\"]", "routes[0].caller.parts[0]"),
    ] {
      guard case .failure(let errors) = load(text.replacing(good, with: bad), isOffline: true) else {
        Issue.record("\(path) was read")
        continue
      }
      #expect(errors.issues.map(\.path) == [path], "\(errors)")
      #expect(errors.issues.allSatisfy { $0.message.hasPrefix("the environment has no") }, "\(errors)")
    }
  }

  @Test func `the store is read alone where nothing else counts`() throws {
    let others = "upstreams: {b: {url: \"${URL}\"}}\nworkers: many\nunknown: 1\n"
    func store(_ text: String) -> Result<StoreSettings, SettingsErrors> {
      StoreSettings.load(text: text, file: "f", environment: environment)
    }
    #expect(try store(others + "store: {path: \"${PORT}.db\"}").get().place == .embedded(path: "9001.db"))
    #expect(try store(others).get().place == .embedded(path: "semel.db"))
    for text in ["store: {path: \"${NONE}\"}", "store: {colour: red}", "", "[", "store: {}\nstore: {}"] {
      #expect(throws: SettingsErrors.self, "\(text)") { try store(text).get() }
    }
  }

  @Test func `a value of the environment is held to the same rules, and is not shown`() {
    #expect(
      issues(upstream + "workers: ${EVIL}", environment: environment) == [
        "2:10: workers: must be a whole number from 0 to 1024"
      ])
    #expect(
      issues(upstream + "store: {path: \"${EMPTY}\"}", environment: environment) == [
        "2:15: store.path: must not be empty: write the path of a database file"
      ])
  }
}
