extension OpenAPIDocument {
  static let components = #"""
    "components": {
      "securitySchemes": {"token": {"type": "http", "scheme": "bearer",
        "description": "The token of admin.token_file, or that of admin.read_token_file, which permits reading alone"}},
      "parameters": {"Id": {"name": "id", "in": "path", "required": true, "description": "A record's id",
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{43}$"}}},
      "responses": {
        "Text": {"description": "Text for a person", "content": {"text/plain": {"schema": {"type": "string"}}}},
        "NoToken": {"description": "There is no token, or another one than the configured ones"},
        "Problem": {"description": "Refused", "content": {"application/problem+json": {
          "schema": {"$ref": "#/components/schemas/Problem"}}}},
        "Record": {"description": "Done", "content": {"application/json": {
          "schema": {"$ref": "#/components/schemas/Record"}}}}},
      "schemas": {
    """# + schemas + #"""
        }
      }

      """#

  private static let schemas = #"""

    "Problem": {"type": "object", "required": ["title", "detail"], "additionalProperties": false, "properties": {
      "title": {"type": "string"}, "detail": {"type": "string"},
      "state": {"type": "string", "description": "The present state of the record that a change does not fit"},
      "attempt": {"type": "integer"}}},
    "Record": {"type": "object", "required": ["id", "state"], "additionalProperties": false, "properties": {
      "id": {"type": "string"},
      "state": {"enum": ["absent", "in_flight", "unknown", "released", "completed", "expired", "unreadable"]},
      "attempt": {"type": "integer"}, "first_seen": {"type": "string"}, "age_seconds": {"type": "number"},
      "lease_left_seconds": {"type": "number"}, "unknown_for_seconds": {"type": "number"},
      "status": {"type": "integer"}, "recorded_at": {"type": "string"}, "expires_at": {"type": "string"},
      "sealed": {"type": "boolean"}, "fields": {"type": "array", "items": {"type": "string"}},
      "body_bytes": {"type": "integer"}, "stored_bytes": {"type": "integer"}, "location": {"type": "string"},
      "next_delivery": {"type": "string", "description": "What the next delivery gets, in words"},
      "shadowed": {"type": "boolean"}, "route": {"type": "string"}, "key_digest": {"type": "string"},
      "caller_digest": {"type": "string"}, "node": {"type": "string"}, "cause": {"type": "string"},
      "stated": {"type": "boolean", "description": "An operator has stated the outcome"},
      "recipe": {"type": "string"}, "deliveries": {"type": "integer"}, "last_seen": {"type": "string"},
      "last_status": {"type": "integer"}, "warning": {"type": "string"},
      "last_mismatch": {"type": "object", "required": ["at", "differs"], "additionalProperties": false,
        "properties": {"at": {"type": "string"}, "differs": {"type": "string"}}}}},
    "RecordList": {"type": "object", "required": ["records"], "additionalProperties": false, "properties": {
      "records": {"type": "array", "items": {"$ref": "#/components/schemas/Record"}},
      "next": {"type": "string", "description": "The cursor of the next page"}}},
    "RecordCounts": {"type": "object", "required": ["in_flight", "unknown", "unreadable"],
      "additionalProperties": false, "properties": {
      "in_flight": {"type": "integer"}, "unknown": {"type": "integer"}, "unreadable": {"type": "integer"}}},
    "RecordSearchResult": {"type": "object", "additionalProperties": false,
      "required": ["key_digests", "records", "searched_events", "node"], "properties": {
      "key_digests": {"type": "array", "items": {"type": "string"}},
      "records": {"type": "array", "items": {"$ref": "#/components/schemas/Record"}},
      "next": {"type": "string"}, "searched_events": {"type": "integer"}, "searched_since": {"type": "string"},
      "node": {"type": "string"}}},
    "Event": {"type": "object", "required": ["time", "event", "method"], "additionalProperties": false,
      "properties": {
      "time": {"type": "string"}, "event": {"enum": ["ended", "lost"]}, "record": {"type": "string"},
      "route": {"type": "string"}, "method": {"type": "string"}, "client": {"type": "string"},
      "status": {"type": "integer"}, "outcome": {"type": "string"}, "reason": {"type": "string"},
      "would": {"type": "string"}, "source": {"type": "string"}, "cause": {"type": "string"},
      "attempt": {"type": "integer"}, "key": {"type": "string"}, "caller": {"type": "string"},
      "duration_ms": {"type": "number"}}},
    "End": {"type": "object", "required": ["missed", "next"], "additionalProperties": false, "properties": {
      "missed": {"type": "integer"}, "next": {"type": "integer"}}},
    "AuditList": {"type": "object", "required": ["entries"], "additionalProperties": false, "properties": {
      "entries": {"type": "array", "items": {"$ref": "#/components/schemas/AuditEntry"}}}},
    "AuditEntry": {"type": "object", "required": ["time", "action", "from", "details"],
      "additionalProperties": false, "properties": {
      "time": {"type": "string"}, "action": {"type": "string"}, "record": {"type": "string"},
      "from": {"type": "string"}, "reason": {"type": "string"}, "warning": {"type": "string"},
      "refused": {"type": "string"}, "failed": {"type": "string"},
      "details": {"type": "object", "additionalProperties": {"type": "string"}}}},
    "Resolution": {"type": "object", "required": ["outcome"], "additionalProperties": false, "properties": {
      "outcome": {"enum": ["applied", "not_applied"]},
      "status": {"type": "integer"}, "headers": {"type": "object", "additionalProperties": {"type": "string"}},
      "body": {"type": "string"}, "body_base64": {"type": "string", "contentEncoding": "base64"},
      "route": {"type": "string"}, "amend": {"type": "boolean"}, "attempt": {"type": "integer", "minimum": 1},
      "reason": {"type": "string", "description": "For the audit log"}}},
    "Key": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
    "RecordQuery": {"type": "object", "required": ["route", "key"], "additionalProperties": false, "properties": {
      "route": {"type": "string"}, "key": {"$ref": "#/components/schemas/Key"},
      "caller": {"type": "object", "additionalProperties": {"type": "string"}}, "path": {"type": "string"},
      "method": {"type": "string"}, "host": {"type": "string"}}},
    "RecordSearch": {"type": "object", "additionalProperties": false, "properties": {
      "key": {"$ref": "#/components/schemas/Key"}, "key_digest": {"type": "string"},
      "caller_digest": {"type": "string"}, "route": {"type": "string"}, "cursor": {"type": "string"},
      "open": {"type": "boolean", "description": "Only open records, which needs no walk where the key is given"}}},
    "RecordStatement": {"type": "object", "required": ["record", "payload", "resolution"],
      "additionalProperties": false, "properties": {
      "record": {"$ref": "#/components/schemas/RecordQuery"},
      "payload": {"type": "object", "additionalProperties": false, "properties": {
        "query": {"type": "string"}, "headers": {"type": "object", "additionalProperties": {"type": "string"}},
        "body": {"type": "string"}, "body_base64": {"type": "string", "contentEncoding": "base64"}}},
      "resolution": {"$ref": "#/components/schemas/Resolution"}}}

    """#
}
