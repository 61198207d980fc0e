import GRDB

/// The tables of the queue, in the application's own database.
enum QueueSchema {
  /// The states of an intent in the queue.
  enum State: Int {
    /// Behind another intent of its group, or waiting for the value of another one's response. Followed by ready, ended.
    case blocked = 0
    /// To be sent at its time. Followed by sending, ended.
    case ready = 1
    /// Leased by a process. Followed by ready, ended.
    case sending = 2
    case ended = 3
  }

  /// Creates what is missing. Names begin with `semel_`, and migrations are numbered by a row of their own, so that they
  /// disturb none of the application's.
  static func migrate(_ db: Database) throws {
    try db.execute(sql: "CREATE TABLE IF NOT EXISTS semel_schema (version INTEGER NOT NULL)")
    let version = try Int.fetchOne(db, sql: "SELECT max(version) FROM semel_schema") ?? 0
    guard version < 1 else { return }
    try db.execute(sql: first)
    try db.execute(sql: "INSERT INTO semel_schema (version) VALUES (1)")
  }

  /// Times are milliseconds since 1970; the end of a lease counts from the boot. `AUTOINCREMENT` keeps the number of a
  /// purged intent from being given again.
  private static let first = """
    CREATE TABLE semel_intent (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      key TEXT NOT NULL UNIQUE,
      once TEXT UNIQUE,
      grp TEXT,
      rule INTEGER NOT NULL,
      object TEXT,
      method TEXT NOT NULL,
      path TEXT NOT NULL,
      fields TEXT NOT NULL,
      body BLOB,
      body_file TEXT,
      is_sealed INTEGER NOT NULL,
      state INTEGER NOT NULL,
      due_at INTEGER NOT NULL,
      lease_owner TEXT,
      lease_boot TEXT,
      lease_until INTEGER,
      created_at INTEGER NOT NULL,
      deliveries INTEGER NOT NULL DEFAULT 0,
      attempts INTEGER NOT NULL DEFAULT 0,
      failures INTEGER NOT NULL DEFAULT 0,
      may_have_run INTEGER NOT NULL DEFAULT 0,
      first_sent_at INTEGER,
      last_sent_at INTEGER,
      expires INTEGER,
      ended_at INTEGER,
      ending TEXT,
      was_replayed INTEGER,
      response_head TEXT,
      response_body BLOB,
      detail TEXT
    );
    CREATE INDEX semel_intent_due ON semel_intent (due_at) WHERE state = 1;
    CREATE INDEX semel_intent_leased ON semel_intent (lease_until) WHERE state = 2;
    CREATE INDEX semel_intent_group ON semel_intent (grp, id) WHERE state < 3 AND grp IS NOT NULL;
    CREATE INDEX semel_intent_object ON semel_intent (object) WHERE state < 2 AND object IS NOT NULL;
    CREATE INDEX semel_intent_ended ON semel_intent (ended_at) WHERE state = 3;
    CREATE TABLE semel_value (
      intent INTEGER NOT NULL REFERENCES semel_intent (id) ON DELETE CASCADE,
      name TEXT NOT NULL,
      source INTEGER NOT NULL,
      pointer TEXT NOT NULL,
      value TEXT,
      PRIMARY KEY (intent, name)
    );
    CREATE INDEX semel_value_source ON semel_value (source) WHERE value IS NULL;
    CREATE TABLE semel_held_group (grp TEXT PRIMARY KEY, intent INTEGER NOT NULL);
    CREATE TABLE semel_open (count INTEGER NOT NULL);
    INSERT INTO semel_open (count) VALUES (0);
    CREATE TRIGGER semel_opened AFTER INSERT ON semel_intent WHEN new.state < 3 BEGIN
      UPDATE semel_open SET count = count + 1;
    END;
    CREATE TRIGGER semel_ended AFTER UPDATE OF state ON semel_intent WHEN old.state < 3 AND new.state = 3 BEGIN
      UPDATE semel_open SET count = count - 1;
    END;
    """
}
