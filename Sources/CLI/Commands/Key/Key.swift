import ArgumentParser

struct Key: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show, find, list, forget, resolve and put the records of a running Semel.",
    subcommands: [Show.self, Find.self, List.self, Forget.self, Resolve.self, Put.self])

  struct Show: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Show where a record stands, and what the next delivery of its key will get.")
    @OptionGroup var record: RecordSelection
    @OptionGroup var call: AdminCall

    func validate() throws { try record.requireOne() }

    func run() throws { AdminCall.show(try record.find(by: call)) }
  }

  struct Forget: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Forget a record: the next delivery of its key runs.",
      discussion: "An owner that is still at work is fenced off, and cannot store its outcome any more.")
    @OptionGroup var record: RecordSelection
    @OptionGroup var call: AdminCall

    func validate() throws { try record.requireOne() }

    func run() throws {
      let id = try record.recordID(by: call)
      AdminCall.showChange(try call.record("DELETE", RecordSelection.place(of: id), id: id))
    }
  }
}
