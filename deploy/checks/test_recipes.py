"""The recipes of the manual: Semel starts with each as it stands on its page, and each line under *why* is tried. Run by
deploy/test; SEMEL_BINARY names the binary."""

import json
import time
import unittest

import recipes
from recipes import CUT, Recipe, document

ALICE = {"X_Account_Id": "alice", "Content_Type": "application/json"}
ORDER = '{"item":"book"}'


class Case(unittest.TestCase):
    def recipe(self, heading, behave):
        node = Recipe(heading, behave).__enter__()
        self.addCleanup(node.__exit__)
        return node

    def expect(self, response, status, outcome=None, code=None):
        """The response has the status, and states the outcome or the code."""
        seen = (response.status, response.headers["Idempotency-Status"])
        self.assertEqual((response.status, bool(outcome)), (status, bool(outcome) and seen[1] is not None), (seen, response.body))
        if outcome:
            self.assertEqual(seen[1].partition(";")[0], outcome)
        if code:
            self.assertEqual(json.loads(response.body)["code"], code)
        return response

    def corrected(self, node, refused, path="/orders"):
        """A request that the backend refuses, and under the same key the corrected one, which runs."""
        self.expect(node.send("POST", path, '{"item":""}', Idempotency_Key="form", **ALICE), refused, "not-stored")
        self.expect(node.send("POST", path, ORDER, Idempotency_Key="form", **ALICE), 201, "executed")

    def spelt(self, node, *spellings):
        """A request that runs once, under whatever spelling of its path its key comes again."""
        fields = {**ALICE, "Idempotency_Key": "spelt"}
        self.expect(node.send("POST", "/orders", ORDER, **fields), 201, "executed")
        for spelling in spellings:
            self.expect(node.send("POST", spelling, ORDER, **fields), 409, code="payload_mismatch")
            self.expect(node.send("POST", spelling, ORDER, X_Account_Id="alice"), 400, code="key_missing")
        self.expect(node.send("POST", "/orders", ORDER, **fields), 201, "replayed")
        self.assertEqual(node.runs, 1)

    def held(self, node, path="/orders", **fields):
        """A request whose outcome is unknown: its retry gets 409, and nothing runs again."""
        fields = fields or {**ALICE, "Idempotency_Key": "held"}
        first = node.send("POST", path, ORDER, **fields)
        runs = node.runs
        self.expect(node.send("POST", path, ORDER, **fields), 409, code="outcome_unknown")
        self.assertEqual(node.runs, runs)
        return first

    def again(self, node, first, key, path="/orders"):
        """A request that is refused for now, and whose next delivery runs."""
        fields = {**ALICE, "Idempotency_Key": key}
        response = self.expect(node.send("POST", path, ORDER, **fields), first, "not-stored")
        self.expect(node.send("POST", path, ORDER, **fields), 201, "executed")
        self.expect(node.send("POST", path, ORDER, **fields), 201, "replayed")
        return response


class Pages(unittest.TestCase):
    def test_each_recipe_is_tried(self):
        tests = [name for case in (APIs, Frameworks, Protocols, Platforms) for name in vars(case) if name.startswith("test_")]
        self.assertEqual(len(tests), len(recipes.recipes()))
        self.assertGreaterEqual(len(tests), 15)


class APIs(Case):
    def test_stripe(self):
        def behave(request):
            if b"cut" in request.body:
                return CUT
            if b"card=none" in request.body:
                return document(400, {"error": {"type": "invalid_request_error", "param": "card", "message": "none"}})
            return document(200, {"id": f"ch_{request.number}"})

        node = self.recipe("An API like Stripe's", behave)
        who = {"Authorization": "Bearer sk_1", "Content_Type": "application/x-www-form-urlencoded"}

        def charge(body, key="k1", path="/v1/charges", **more):
            return node.send("POST", path, body, Idempotency_Key=key, **{**who, **more})

        first = self.expect(charge("amount=5"), 200, "executed")
        self.assertEqual(self.expect(charge("amount=5"), 200, "replayed").body, first.body)
        self.expect(charge("amount=5", key=None), 200)
        for refused in (charge("amount=6"), charge("amount=5", path="/v1/refunds")):
            self.assertEqual(json.loads(self.expect(refused, 400).body)["error"]["type"], "idempotency_error")
        self.expect(charge("amount=5", Stripe_Account="acct_1"), 200, "executed")
        self.expect(charge("amount=5&card=none", key="k2"), 400, "not-stored")
        self.expect(charge("amount=5&card=good", key="k2"), 200, "executed")
        self.expect(charge("cut", key="k3"), 502)
        lost = self.expect(charge("cut", key="k3"), 409)
        self.assertEqual(lost.headers["Stripe-Should-Retry"], "false")
        self.assertEqual(node.runs, 6)

    def test_persisted_queries(self):
        def behave(request):
            body = json.loads(request.body)
            if "query" not in body:
                return document(200, {"errors": [{"message": "not found", "extensions": {"code": "PERSISTED_QUERY_NOT_FOUND"}}]})
            return document(200, {"data": {"order": request.number}})

        node = self.recipe("GraphQL with persisted queries", behave)
        digest = {"extensions": {"persistedQuery": {"version": 1, "sha256Hash": "ab"}}}
        whole = {**digest, "query": "mutation { order { id } }"}

        def send(body, key="k1"):
            return node.send("POST", "/graphql", json.dumps(body), Idempotency_Key=key, **ALICE)

        self.expect(send(digest), 200, "not-stored")
        first = self.expect(send(whole), 200, "executed")
        self.assertEqual(self.expect(send(whole), 200, "replayed").body, first.body)
        self.assertEqual(node.runs, 2)
        self.expect(send({"query": "{ orders { id } }"}), 200, "ignored")
        for passed in ({"query": "{ orders { id } }"}, digest):
            self.expect(send(passed, key=None), 200)
        self.assertEqual(node.runs, 5)

    def test_webhooks(self):
        failing = set()

        def behave(request):
            return document(500 if request.path in failing else 200, {"taken": request.number})

        node = self.recipe("Webhooks that you receive", behave)

        def adyen(code):
            item = {"pspReference": "8515", "eventCode": code, "success": "true"}
            return {"live": "true", "notificationItems": [{"NotificationRequestItem": item}]}

        events = [
            ("/hooks/stripe", {"id": "evt_1", "pending_webhooks": "{n}"}, {"Stripe_Signature": "t={n},v1=ab"}),
            ("/hooks/github", {"action": "opened"}, {"X_GitHub_Delivery": "d-1", "X_Hub_Signature": "{n}"}),
            ("/hooks/sns", {"Type": "Notification", "MessageId": "22b80b92", "Signature": "{n}"},
             {"Content_Type": "text/plain; charset=UTF-8"}),
            ("/hooks/adyen", adyen("AUTHORISATION"), {}),
        ]

        def deliver(path, event, fields, attempt):
            fields = {name: value.replace("{n}", str(attempt)) for name, value in fields.items()}
            body = json.dumps(event).replace("{n}", str(attempt))
            return node.send("POST", path, body, **{"Content_Type": "application/json", **fields})

        for path, event, fields in events:
            failing.add(path)
            self.expect(deliver(path, event, fields, 1), 500, "not-stored")
            failing.clear()
            taken = self.expect(deliver(path, event, fields, 2), 200, "executed")
            self.assertEqual(self.expect(deliver(path, event, fields, 3), 200, "replayed").body, taken.body)
        self.expect(deliver("/hooks/adyen", adyen("CAPTURE"), {}, 1), 200, "executed")
        # The id of another sender's event.
        self.expect(deliver("/hooks/sns", {"MessageId": "evt_1"}, {}, 1), 200, "executed")


def orders(refusal=None):
    """A backend that places orders, and first responds as a script in the key's request says."""
    def behave(request):
        if refusal and b'"item":""' in request.body:
            return refusal
        return document(201, {"order": request.number})

    return behave


class Frameworks(Case):
    def test_rails(self):
        cuts = set()

        def behave(request):
            if request.headers["Idempotency-Key"] in cuts:
                return CUT
            if b"taken" in request.body:
                return document(422, {"error": "Unprocessable"})
            return orders(document(422, {"errors": {"item": ["can't be blank"]}}))(request)

        node = self.recipe("Rails", behave)
        self.spelt(node, "/orders.json", "/orders/")
        self.corrected(node, 422)
        taken = '{"item":"taken"}'
        for outcome in ("executed", "replayed"):
            self.expect(node.send("POST", "/orders", taken, Idempotency_Key="k2", **ALICE), 422, outcome)
        cuts.add("held")
        self.expect(self.held(node), 502)

    def test_django(self):
        failed = set()

        def behave(request):
            key = request.headers["Idempotency-Key"]
            if key in ("broken", "forged") and key not in failed:
                failed.add(key)
                return (500, {}, b"<h1>Server Error</h1>") if key == "broken" else (403, {}, b"CSRF")
            return orders(document(400, {"item": ["This field may not be blank."]}))(request)

        node = self.recipe("Django", behave)
        self.spelt(node, "/orders/")
        self.corrected(node, 400)
        self.again(node, 500, "broken")
        self.again(node, 403, "forged")

    def test_laravel(self):
        seen = set()

        def behave(request):
            key = request.headers["Idempotency-Key"]
            if key in ("expired", "throttled") and key not in seen:
                seen.add(key)
                return document(419, {}) if key == "expired" else document(429, {}, Retry_After=7)
            return orders(document(422, {"message": "Invalid", "errors": {"item": ["required"]}}))(request)

        node = self.recipe("Laravel", behave)
        self.again(node, 419, "expired")
        self.assertEqual(self.again(node, 429, "throttled").headers["Retry-After"], "7")
        self.corrected(node, 422)

    def test_spring(self):
        placed, locked = {}, set()

        def behave(request):
            key, number = request.headers["Idempotency-Key"], request.headers["Idempotency-Request-Id"]
            if request.method == "GET":
                found = placed.get(request.path.partition("request_id=")[2])
                return document(200, found) if found else document(404, {"title": "Order not found"})
            if key == "locked" and key not in locked:
                locked.add(key)
                return document(409, {"title": "Optimistic lock"})
            if key == "lost-before" and key not in locked:
                locked.add(key)
                return CUT
            placed[number] = {"order": request.number}
            return CUT if key == "lost-after" else document(201, placed[number])

        node = self.recipe("Spring", behave)

        def posts():
            return len([request for request in node.backend.requests if request.method == "POST"])

        for key, runs, outcome in (("lost-after", 1, "replayed"), ("lost-before", 2, "executed")):
            before, fields = posts(), {**ALICE, "Idempotency_Key": key}
            self.expect(node.send("POST", "/orders", ORDER, **fields), 502, code="outcome_unknown")
            response = node.send("POST", "/orders", ORDER, **fields)
            deadline = time.monotonic() + recipes.PATIENCE
            # The query waits for `settle`.
            while response.status == 409 and time.monotonic() < deadline:
                time.sleep(0.1)
                response = node.send("POST", "/orders", ORDER, **fields)
            self.expect(response, 201, outcome)
            self.assertEqual(posts() - before, runs)
        self.again(node, 409, "locked")

    def test_express(self):
        crashes = {"held"}

        def behave(request):
            return CUT if request.headers["Idempotency-Key"] in crashes else orders()(request)

        node = self.recipe("Express", behave)
        self.expect(self.held(node), 502, code="outcome_unknown")
        self.assertEqual(node.runs, 1)
        crashes.clear()
        resolved = node.run(
            "key", "resolve", "--not-applied", "--route", "orders", "--key", "held", "--caller", "header:X-Account-Id=alice")
        self.assertEqual(resolved.returncode, 0, resolved.stderr)
        self.expect(node.send("POST", "/orders", ORDER, Idempotency_Key="held", **ALICE), 201, "executed")
        port = node.backend.server_port
        node.backend.stop()
        fields = {**ALICE, "Idempotency_Key": "early"}
        self.expect(node.send("POST", "/orders", ORDER, **fields), 502, code="upstream_unreachable")
        node.backend = recipes.Backend(behave, port)
        self.expect(node.send("POST", "/orders", ORDER, **fields), 201, "executed")

    def test_fastapi(self):
        def behave(request):
            if request.path == "/orders/":
                return 307, {"Location": "/orders"}, b""
            if b"sold out" in request.body:
                return document(422, {"detail": "sold out"})
            return orders(document(422, {"detail": [{"loc": ["body", "item"], "msg": "short", "type": "value"}]}))(request)

        node = self.recipe("FastAPI", behave)
        self.corrected(node, 422)
        sold = '{"item":"sold out"}'
        for outcome in ("executed", "replayed"):
            self.expect(node.send("POST", "/orders", sold, Idempotency_Key="k1", **ALICE), 422, outcome)
        self.expect(node.send("POST", "/orders/", ORDER, Idempotency_Key="k2", **ALICE), 307, "not-stored")
        self.expect(node.send("POST", "/orders", ORDER, Idempotency_Key="k2", **ALICE), 201, "executed")


class Protocols(Case):
    def test_webdav_and_tus(self):
        def behave(request):
            if request.method == "MOVE":
                moves = [r for r in node.backend.requests if r.method == "MOVE"]
                return (201, {}, b"") if len(moves) == 1 else (404, {}, b"")
            if request.method == "POST":
                return 201, {"Location": f"/files/{request.number}", "Tus-Resumable": "1.0.0"}, b""
            return (204, {"Upload-Offset": "5"}, b"") if request.method == "PATCH" else (201, {}, b"")

        node = self.recipe("WebDAV, and uploads by tus", behave)
        move = {"Idempotency_Key": "k1", "X_Account_Id": "alice", "Destination": "/dav/b"}
        self.expect(node.send("MOVE", "/dav/a", **move), 201, "executed")
        self.expect(node.send("MOVE", "/dav/a", **move), 201, "replayed")
        self.expect(node.send("MOVE", "/dav/a", **{**move, "Destination": "/dav/c"}), 409, code="payload_mismatch")
        large = b"x" * (3 << 20)
        for _ in range(2):
            self.expect(node.send("PUT", "/dav/a", large, X_Account_Id="alice"), 201)
        new = {"Idempotency_Key": "k2", "X_Account_Id": "alice", "Upload_Length": "5", "Tus_Resumable": "1.0.0"}
        first = self.expect(node.send("POST", "/files", **new), 201, "executed")
        again = self.expect(node.send("POST", "/files", **new), 201, "replayed")
        self.assertEqual(again.headers["Location"], first.headers["Location"])
        before = node.runs
        for _ in range(2):
            self.expect(node.send("PATCH", first.headers["Location"], b"12345", Upload_Offset="0"), 204)
        self.assertEqual(node.runs, before + 2)

    def test_object_store(self):
        def behave(request):
            if "uploads" in request.path:
                return 200, {"Content-Type": "application/xml"}, b"<UploadId>%d</UploadId>" % request.number
            return 200, {"Content-Type": "application/xml"}, b"<ETag>%d</ETag>" % request.number

        node = self.recipe("An object store like S3", behave)

        def call(call, attempt, path="/bucket/key?uploads", body=b"", method="POST"):
            scope = "AKIAEXAMPLE/20261130/eu-central-1/s3/aws4_request"
            return node.send(
                method, path, body, amz_sdk_invocation_id=call, amz_sdk_request=f"attempt={attempt}; max=3",
                x_amz_date=f"20261130T12000{attempt}Z",
                Authorization=f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature={'%064d' % attempt}")

        first = self.expect(call("6e2c8a1e", 1), 200, "executed")
        self.assertEqual(self.expect(call("6e2c8a1e", 2), 200, "replayed").body, first.body)
        self.assertNotEqual(self.expect(call("0f4b77d2", 1), 200, "executed").body, first.body)
        whole = ("/bucket/key?uploadId=1", b"<CompleteMultipartUpload/>")
        first = self.expect(call("9a0c11ff", 1, *whole), 200, "executed")
        self.assertEqual(self.expect(call("9a0c11ff", 2, *whole), 200, "replayed").body, first.body)
        before = node.runs
        for attempt in (1, 2):
            self.expect(call("5d1e2f3a", attempt, "/bucket/key", b"x", "PUT"), 200)
        self.assertEqual(node.runs, before + 2)

    def test_odata_batch(self):
        node = self.recipe("OData batches", lambda request: document(200, {"responses": [{"id": "1", "status": 201}], "n": request.number}))

        def batch(boundary, part, key="k1"):
            body = f"--{boundary}\r\nContent-Type: application/http\r\n\r\nPOST Orders HTTP/1.1\r\n\r\n{part}\r\n--{boundary}--\r\n"
            return node.send(
                "POST", "/odata/$batch", body, Repeatability_Request_ID=key, X_Account_Id="alice",
                Content_Type=f"multipart/mixed; boundary={boundary}")

        first = self.expect(batch("batch_1", "{}"), 200, "executed")
        self.assertEqual(self.expect(batch("batch_2", "{}"), 200, "replayed").body, first.body)
        self.expect(batch("batch_3", '{"a":1}'), 409, code="payload_mismatch")
        self.assertEqual(node.runs, 1)


def scripted(responses):
    """A backend whose first response to a key is that of the script, if it has one, and which then places the order."""
    seen = set()

    def behave(request):
        key = request.headers["Idempotency-Key"]
        if key in responses and key not in seen:
            seen.add(key)
            return responses[key]
        return document(201, {"order": request.number})

    return behave


class Platforms(Case):
    def held_back(self, node, key, status):
        """The outcome of the key's request is unknown, and its retry does not run."""
        first = self.held(node, Idempotency_Key=key, **ALICE)
        self.assertEqual((first.status, first.headers["Idempotency-Status"]), (status, "unknown"))

    def test_istio(self):
        envoy = {"Server": "istio-envoy", "Content-Type": "text/plain"}
        node = self.recipe("A service behind Istio", scripted({
            "held": (503, envoy, b"upstream connect error or disconnect/reset before headers. reset reason: connection termination"),
            "empty": (503, envoy, b"no healthy upstream"),
            "shed": (503, {**envoy, "Retry-After": "1"}, b"busy"),
            "paced": (429, envoy, b"slow down")}))
        self.held_back(node, "held", 503)
        self.again(node, 503, "empty")
        self.again(node, 503, "shed")
        before = node.runs
        self.expect(node.send("POST", "/orders", ORDER, Idempotency_Key="paced", **ALICE), 201, "executed")
        self.assertEqual(node.runs, before + 2)

    def test_cdn(self):
        lost, free = (520, 524, 527, 502, 504), (521, 522, 523, 525, 526, 530)
        edge = {"Server": "cloudflare", "CF-RAY": "8f", "Content-Type": "text/html"}
        node = self.recipe("A service behind a CDN", scripted({
            f"key-{status}": (status, edge, b"<html></html>") for status in lost + free}))
        for status in lost:
            self.held_back(node, f"key-{status}", status)
        for status in free:
            self.again(node, status, f"key-{status}")

    def test_heroku(self):
        router = {"Via": "1.1 vegur", "Content-Type": "text/html"}
        node = self.recipe("A service on Heroku", scripted({
            "held": (503, router, b"<html>Application error</html>"), "shed": (503, {**router, "Retry-After": "1"}, b"")}))
        self.held_back(node, "held", 503)
        self.again(node, 503, "shed")


if __name__ == "__main__":
    unittest.main()
