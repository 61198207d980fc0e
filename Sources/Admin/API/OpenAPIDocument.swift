/// The description of the admin API by OpenAPI 3.1, which `/v1/openapi.json` returns.
enum OpenAPIDocument {
  static let text = #"{"openapi": "3.1.0", "# + info + #""paths": {"# + paths + "},\n" + components + "}\n"

  private static let info = #"""
    "info": {
      "title": "Semel, the admin API", "version": "1",
      "description": "What an operator reads and changes of one process. Times are RFC 3339 in UTC. No document contains a key, a caller or the body of a response."
    },
    "security": [{}, {"token": []}],

    """#

  private static let paths = #"""

    "/livez": {"get": {
      "operationId": "getLiveness", "summary": "Whether the process runs", "security": [{}],
      "responses": {"200": {"$ref": "#/components/responses/Text"}}}},
    "/readyz": {"get": {
      "operationId": "getReadiness", "summary": "Whether the process takes requests, and the state of what it uses",
      "security": [{}],
      "responses": {
        "200": {"$ref": "#/components/responses/Text"}, "503": {"$ref": "#/components/responses/Text"}}}},
    "/metrics": {"get": {
      "operationId": "getMetrics", "summary": "The metrics in Prometheus's text format",
      "responses": {
        "200": {"$ref": "#/components/responses/Text"}, "401": {"$ref": "#/components/responses/NoToken"}}}},
    "/v1/config": {"get": {
      "operationId": "getConfiguration", "summary": "The configuration in use, without its secrets",
      "responses": {
        "200": {"description": "Done", "content": {"application/json": {"schema": {"type": "object"}}}},
        "401": {"$ref": "#/components/responses/NoToken"}}}},
    "/v1/openapi.json": {"get": {
      "operationId": "getDescription", "summary": "This document",
      "responses": {
        "200": {"description": "Done", "content": {"application/json": {"schema": {"type": "object"}}}},
        "401": {"$ref": "#/components/responses/NoToken"}}}},
    "/v1/audit": {"get": {
      "operationId": "listAudit", "summary": "The latest changes that operators have made by this process",
      "responses": {
        "200": {"description": "Done", "content": {"application/json": {
          "schema": {"$ref": "#/components/schemas/AuditList"}}}},
        "401": {"$ref": "#/components/responses/NoToken"}}}},
    "/v1/requests": {"get": {
      "operationId": "listRequests",
      "summary": "The latest events of keyed, refused and shadowed requests, a line each, and a last line",
      "description": "Each line but the last is an Event. The last one is an End: the number for `from` in the next request, and the number of events that were missed.",
      "parameters": [
        {"name": "last", "in": "query", "description": "Begin with so many earlier events",
          "schema": {"type": "number", "minimum": 0}},
        {"name": "from", "in": "query", "description": "Begin with the event of this number",
          "schema": {"type": "number", "minimum": 0}},
        {"name": "wait", "in": "query", "description": "Wait so many seconds, at most 8, for an event",
          "schema": {"type": "number", "minimum": 0}}],
      "responses": {
        "200": {"description": "Done", "content": {"application/x-ndjson": {"schema": {"type": "string"}}}},
        "400": {"$ref": "#/components/responses/Problem"}, "401": {"$ref": "#/components/responses/NoToken"}}}},
    "/v1/records": {"get": {
      "operationId": "listRecords", "summary": "A page of the open and the unreadable records",
      "parameters": [
        {"name": "state", "in": "query", "schema": {"enum": ["in_flight", "unknown", "unreadable"]}},
        {"name": "cursor", "in": "query", "description": "The `next` of the page before",
          "schema": {"type": "string"}}],
      "responses": {
        "200": {"description": "Done", "content": {"application/json": {
          "schema": {"$ref": "#/components/schemas/RecordList"}}}},
        "400": {"$ref": "#/components/responses/Problem"}, "401": {"$ref": "#/components/responses/NoToken"},
        "503": {"$ref": "#/components/responses/Problem"}}}},
    "/v1/record-counts": {"get": {
      "operationId": "countRecords", "summary": "The numbers of the open records, with those of shadowed routes",
      "responses": {
        "200": {"description": "Done", "content": {"application/json": {
          "schema": {"$ref": "#/components/schemas/RecordCounts"}}}},
        "400": {"$ref": "#/components/responses/Problem"}, "401": {"$ref": "#/components/responses/NoToken"},
        "503": {"$ref": "#/components/responses/Problem"}}}},
    "/v1/records/{id}": {
      "parameters": [{"$ref": "#/components/parameters/Id"}],
      "get": {
        "operationId": "getRecord", "summary": "Where a record stands, and what its next delivery gets",
        "responses": {
          "200": {"$ref": "#/components/responses/Record"}, "400": {"$ref": "#/components/responses/Problem"},
          "401": {"$ref": "#/components/responses/NoToken"}, "503": {"$ref": "#/components/responses/Problem"}}},
      "delete": {
        "operationId": "forgetRecord", "summary": "Remove a record: its next delivery runs",
        "description": "Without a body it needs no Content-Type.",
        "parameters": [{"name": "reason", "in": "query", "description": "For the audit log",
          "schema": {"type": "string"}}],
        "responses": {
          "200": {"$ref": "#/components/responses/Record"}, "400": {"$ref": "#/components/responses/Problem"},
          "401": {"$ref": "#/components/responses/NoToken"}, "403": {"$ref": "#/components/responses/Problem"},
          "404": {"$ref": "#/components/responses/Problem"}, "415": {"$ref": "#/components/responses/Problem"},
          "502": {"$ref": "#/components/responses/Problem"}, "503": {"$ref": "#/components/responses/Problem"}}}},
    "/v1/records/{id}/resolve": {"post": {
      "operationId": "resolveRecord", "summary": "State the outcome of a record whose outcome is unknown",
      "parameters": [{"$ref": "#/components/parameters/Id"}],
      "requestBody": {"required": true, "content": {"application/json": {
        "schema": {"$ref": "#/components/schemas/Resolution"}}}},
      "responses": {
        "200": {"$ref": "#/components/responses/Record"}, "400": {"$ref": "#/components/responses/Problem"},
        "401": {"$ref": "#/components/responses/NoToken"}, "403": {"$ref": "#/components/responses/Problem"},
        "404": {"$ref": "#/components/responses/Problem"}, "409": {"$ref": "#/components/responses/Problem"},
        "413": {"$ref": "#/components/responses/Problem"}, "415": {"$ref": "#/components/responses/Problem"},
        "502": {"$ref": "#/components/responses/Problem"}, "503": {"$ref": "#/components/responses/Problem"}}}},
    "/v1/records/find": {"post": {
      "operationId": "findRecord", "summary": "The record of a request, by route, caller and key",
      "requestBody": {"required": true, "content": {"application/json": {
        "schema": {"$ref": "#/components/schemas/RecordQuery"}}}},
      "responses": {
        "200": {"$ref": "#/components/responses/Record"}, "400": {"$ref": "#/components/responses/Problem"},
        "401": {"$ref": "#/components/responses/NoToken"}, "404": {"$ref": "#/components/responses/Problem"},
        "413": {"$ref": "#/components/responses/Problem"}, "415": {"$ref": "#/components/responses/Problem"},
        "503": {"$ref": "#/components/responses/Problem"}}}},
    "/v1/records/search": {"post": {
      "operationId": "searchRecords", "summary": "The records of a key, of all its callers, or of a caller",
      "requestBody": {"required": true, "content": {"application/json": {
        "schema": {"$ref": "#/components/schemas/RecordSearch"}}}},
      "responses": {
        "200": {"description": "Done", "content": {"application/json": {
          "schema": {"$ref": "#/components/schemas/RecordSearchResult"}}}},
        "400": {"$ref": "#/components/responses/Problem"}, "401": {"$ref": "#/components/responses/NoToken"},
        "404": {"$ref": "#/components/responses/Problem"}, "413": {"$ref": "#/components/responses/Problem"},
        "415": {"$ref": "#/components/responses/Problem"}, "503": {"$ref": "#/components/responses/Problem"}}}},
    "/v1/records/put": {"post": {
      "operationId": "putRecord", "summary": "State that a request was carried out without Semel",
      "requestBody": {"required": true, "content": {"application/json": {
        "schema": {"$ref": "#/components/schemas/RecordStatement"}}}},
      "responses": {
        "200": {"$ref": "#/components/responses/Record"}, "400": {"$ref": "#/components/responses/Problem"},
        "401": {"$ref": "#/components/responses/NoToken"}, "403": {"$ref": "#/components/responses/Problem"},
        "404": {"$ref": "#/components/responses/Problem"}, "409": {"$ref": "#/components/responses/Problem"},
        "413": {"$ref": "#/components/responses/Problem"}, "415": {"$ref": "#/components/responses/Problem"},
        "502": {"$ref": "#/components/responses/Problem"}, "503": {"$ref": "#/components/responses/Problem"}}}}

    """#
}

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
