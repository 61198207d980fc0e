"""Holds the responses of the admin API against its own description: admin_api.py BASE RECORD.

Calls each operation of /v1/openapi.json, with what its description allows and with what it does not, and checks status,
type and document. Prints the number of responses that were held against a schema."""

import json
import sys

import httpx
import jsonschema

BASE, RECORD = sys.argv[1:]
DOCUMENT = httpx.get(BASE + "/v1/openapi.json").json()
checked = 0


def validate(value, schema):
    global checked
    whole = dict(schema, components=DOCUMENT["components"])
    jsonschema.Draft202012Validator(whole).validate(value)
    checked += 1


def resolved(value):
    while "$ref" in value:
        target = DOCUMENT
        for name in value["$ref"].split("/")[1:]:
            target = target[name]
        value = target
    return value


def hold(method, path, response):
    """The response is one that the operation describes."""
    described = DOCUMENT["paths"][path][method]["responses"]
    assert str(response.status_code) in described, (method, path, response.status_code, response.text)
    content = resolved(described[str(response.status_code)]).get("content", {})
    kind = response.headers["content-type"].split(";")[0]
    assert not content or kind in content, (method, path, kind)
    if kind in ("application/json", "application/problem+json"):
        validate(response.json(), content[kind]["schema"])
    return response


def send(method, path, record=RECORD, **more):
    return hold(method, path, httpx.request(method.upper(), BASE + path.replace("{id}", record), timeout=20, **more))


def main():
    for path, item in DOCUMENT["paths"].items():
        if "get" in item:
            send("get", path)
    for line in httpx.get(BASE + "/v1/requests?last=9").text.splitlines()[:-1]:
        validate(json.loads(line), DOCUMENT["components"]["schemas"]["Event"])
    end = json.loads(httpx.get(BASE + "/v1/requests").text.splitlines()[-1])
    validate(end, DOCUMENT["components"]["schemas"]["End"])
    assert send("get", "/v1/records", params={"state": "nothing"}).status_code == 400
    assert send("get", "/v1/records/{id}", record="short").status_code == 400
    query = {"route": "orders", "key": "k", "caller": {"header:Authorization": "Bearer alice"}, "path": "/v1/orders",
             "method": "POST", "host": "orders.example"}
    validate(query, DOCUMENT["components"]["schemas"]["RecordQuery"])
    assert send("post", "/v1/records/find", json=query).json()["id"] == RECORD
    assert len(send("post", "/v1/records/search", json={"key": "k"}).json()["records"]) == 1
    for path in ("find", "search", "put"):
        assert send("post", f"/v1/records/{path}", json={"nothing": 1}).status_code == 400
        assert send("post", f"/v1/records/{path}", content="{}").status_code == 415
    resolution = {"outcome": "applied", "status": 201, "body": "{}", "attempt": 1, "reason": "seen in the ledger"}
    validate(resolution, DOCUMENT["components"]["schemas"]["Resolution"])
    assert send("post", "/v1/records/{id}/resolve", json=resolution).status_code == 200
    assert send("post", "/v1/records/{id}/resolve", json=resolution).status_code == 409
    statement = {"record": dict(query, key="by-hand"), "payload": {"body": "{}", "headers": {}},
                 "resolution": {"outcome": "applied", "status": 201}}
    validate(statement, DOCUMENT["components"]["schemas"]["RecordStatement"])
    assert send("post", "/v1/records/put", json=statement).status_code == 200
    assert send("post", "/v1/records/put", json=statement).status_code == 409
    assert send("delete", "/v1/records/{id}", params={"reason": "a-test"}).status_code == 200
    assert send("delete", "/v1/records/{id}").status_code == 404
    entries = send("get", "/v1/audit").json()["entries"]
    assert [entry["action"] for entry in entries] == ["forget", "forget", "put", "put", "resolve", "resolve"], entries
    assert [entry.get("reason") for entry in entries] == [None, "a-test", None, None] + ["seen in the ledger"] * 2, entries
    print(json.dumps({"checked": checked}))


main()
