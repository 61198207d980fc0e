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
