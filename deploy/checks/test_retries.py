"""The settings for retry libraries in the manual: each example runs as it stands on its page, against Semel, while connections
break and the backend fails. Run by deploy/test; SEMEL_BINARY names the binary."""

import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

import clients
from clients import Network

PAGE = (clients.DEPLOY / "manual/retry-libraries.md").read_text()
ORDER = '{"item":"book"}'

ROUTES = """
  - {name: orders, match: {methods: [POST], path: "/v1/orders/**"}, caller: {parts: [address]}, duplicates: reject,
     mismatch_status: 422}
  - {name: charges, match: {methods: [POST], path: "/v1/charges/**"}, caller: {parts: ["header:Authorization"]},
     profile: stripe, duplicates: reject}
  - {name: calls, match: {methods: [POST], path: "/bucket/**"}, key: {from: [header:amz-sdk-invocation-id]},
     idempotency: optional, caller: {parts: ["sigv4:access_key", address]}}
"""

# The rest of each program: the URL and the key come as arguments, and the status of the last response goes to its output.
PYTHON = """
import sys
url, key = sys.argv[1:]
secret = "sk_test_semel"
"""
SUBMIT = """
response = submit(url, {"item": "book"}, key)
print(response.status_code, response.text)
"""
BOTO3 = """
from botocore.exceptions import ClientError
try:
    print(200, client.create_multipart_upload(Bucket="bucket", Key=key)["UploadId"])
except ClientError as error:
    print(error.response["ResponseMetadata"]["HTTPStatusCode"], error.response["Error"])
"""
STRIPE = """
try:
    print(200, client.v1.charges.update(key, {"description": "book"}))
except stripe.StripeError as error:
    print(error.http_status, error.http_body)
"""
GOT = """
const got = require('got')
const [url, key] = process.argv.slice(2)
const order = {item: 'book'}
const submit = () => %s
submit().then(response => console.log(response.statusCode, response.body),
  error => console.log(error.response?.statusCode, error.response?.body))
"""
AXIOS = """
const tried = []
const axiosRetry = (_, options) => {
  for (const failure of JSON.parse(process.argv[2])) tried.push(options.retryCondition(failure))
}
const client = undefined
%s
console.log(JSON.stringify(tried))
"""
ACCOUNT = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "eu-central-1"}


def example(heading):
    """The example under a heading of the page."""
    [chapter] = re.findall(rf"^## {re.escape(heading)}.*?\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    [text] = re.findall(r"^```\w+\n(.*?)^```$", chapter, re.M | re.S)
    return text


Library = collections.namedtuple("Library", "command program path repeats_500 repeats_unknown in_flight")
LIBRARIES = {
    "requests": Library([sys.executable], PYTHON + example("requests and urllib3") + SUBMIT, "/v1/orders/requests", False, True, True),
    "httpx": Library([sys.executable], PYTHON + example("httpx with tenacity") + SUBMIT, "/v1/orders/httpx", False, False, True),
    "got": Library(["node"], GOT % example("got"), "/v1/orders/got", False, True, True),
    "boto3": Library([sys.executable], PYTHON + example("boto3") + BOTO3, "/bucket", True, False, False),
    "stripe": Library([sys.executable], PYTHON + example("Stripe's libraries") + STRIPE, "/v1/charges", True, False, True),
}


class Scripts(clients.Handler):
    """Fails as the last part of the path says, before a hyphen."""

    def script_away(self, number):
        self.respond(503, {}, Retry_After=1) if number == 1 else self.script_plain(number)

    def script_failed(self, _):
        self.respond(500, {"error": {"message": "a fault"}})

    def respond(self, status, document, **fields):
        if not self.path.startswith("/bucket/"):
            return super().respond(status, document, **fields)
        text = b"<InitiateMultipartUploadResult><UploadId>%d</UploadId></InitiateMultipartUploadResult>" % document.get("order", 0)
        self.send_response(status)
        for name, value in {"Content-Type": "application/xml", "Content-Length": len(text), **fields}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(text)


class Client:
    """A program with one of the libraries, which calls Semel over a network of its own."""

    def __init__(self, case, name, script):
        self.case, self.library, self.script = case, LIBRARIES[name], script
        self.file = case.folder / f"{name}.program"
        self.path = f"{self.library.path}/{script}" + ("?uploads" if name == "boto3" else "")
        self.is_whole = name in ("boto3", "stripe")
        self.process = None

    @property
    def attempts(self):
        return self.case.backend.attempts[self.path]

    def start(self, **faults):
        self.network = Network(self.case.semel.port, **faults)
        url = f"http://127.0.0.1:{self.network.port}"
        words = [url, self.script] if self.is_whole else [url + self.path, f"key-{self.path}"]
        self.process = subprocess.Popen(
            [*self.library.command, self.file, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, **ACCOUNT, "NODE_PATH": "/usr/share/nodejs"})

    def end(self):
        """The status of the last response, and its text."""
        output, errors = self.process.communicate(timeout=clients.PATIENCE)
        self.case.assertEqual(self.process.returncode, 0, errors)
        status, _, text = output.strip().partition(" ")
        return int(status), text

    @property
    def deliveries(self):
        return self.network.sent.count(b"POST ")

    def close(self):
        if self.process:
            self.process.kill()
            self.process.communicate()
            self.network.close()


class Examples(unittest.TestCase):
    """Each library meets each fault beside the others, since they mostly wait; the tests await them."""

    @classmethod
    def setUpClass(cls):
        folder = clients.temporary_folder()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.backend = clients.Backend()
        cls.backend.RequestHandlerClass = Scripts
        cls.addClassCleanup(cls.backend.stop)
        cls.semel = clients.Semel(cls.folder, cls.backend, ROUTES)
        cls.addClassCleanup(cls.semel.stop)
        for name, library in LIBRARIES.items():
            (cls.folder / f"{name}.program").write_text(library.program)
        pool = concurrent.futures.ThreadPoolExecutor(8)
        cls.addClassCleanup(pool.shutdown)
        cls.runs = {
            (check, name): pool.submit(cls.run_check, check, name)
            for check in CHECKS for name in LIBRARIES if cls.is_here(name)}

    @staticmethod
    def is_here(name):
        return name != "got" or shutil.which("node") and os.path.exists("/usr/share/nodejs/got")

    @classmethod
    def run_check(cls, check, name):
        client = Client(cls("test_" + check), name, check.partition("_")[0])
        try:
            getattr(client.case, "check_" + check)(client)
        finally:
            client.close()

    def await_check(self, check):
        for name in LIBRARIES:
            if (check, name) in self.runs:
                with self.subTest(name):
                    self.runs[check, name].result()

    def test_all_libraries_are_here(self):
        if not self.is_here("got") and not os.environ.get("SEMEL_TEST_ALL"):
            self.skipTest("there is no got")
        self.assertTrue(self.is_here("got"), "there is no got: run deploy/install test")

    def expect(self, client, attempts, executed):
        """The backend got so many attempts, all of them with one key and the same bytes."""
        self.assertEqual(len(client.attempts), attempts)
        self.assertEqual(len(set(client.attempts)), 1)
        self.assertEqual(self.backend.executed[client.path], executed)

    def check_plain_response_that_is_lost_is_replayed(self, client):
        client.start(lose_when=lambda server: server.recv(1))
        status, text = client.end()
        self.assertIn(status, (200, 201), text)
        self.assertIn("1", text)
        self.assertRegex(client.network.received, b"(?i)\r\n(idempotency-status: replayed|idempotent-replayed: true)")
        self.assertEqual(client.deliveries, 2)
        self.expect(client, attempts=1, executed=1)

    def check_held_request_leads_to_the_first_outcome(self, client):
        client.start(lose_when=lambda _: clients.until(lambda: client.attempts))
        if client.library.in_flight:
            client.network.until(b" 409 ")
        else:
            clients.until(lambda: client.deliveries == 2)
        self.backend.released[client.path].set()
        status, text = client.end()
        self.assertIn(status, (200, 201), text)
        self.expect(client, attempts=1, executed=1)

    def check_away_for_a_second_is_tried_again(self, client):
        client.start()
        status, text = client.end()
        self.assertIn(status, (200, 201), text)
        self.assertEqual(len(client.attempts), 2)
        self.assertEqual(len({(key, body) for key, body, _ in client.attempts}), 1)
        self.assertEqual(self.backend.executed[client.path], 1)

    def check_failed_request_runs_once(self, client):
        client.start()
        status, text = client.end()
        self.assertEqual(status, 500, text)
        self.assertEqual(client.deliveries > 1, client.library.repeats_500)
        self.expect(client, attempts=1, executed=0)

    def check_cut_request_is_unknown_and_never_runs_again(self, client):
        client.start()
        if client.library.repeats_unknown:
            # The library goes on by the status alone; two retries show that they are harmless.
            clients.until(lambda: client.deliveries == 4)
        else:
            status, text = client.end()
            self.assertIn(status, (409, 502), text)
        self.expect(client, attempts=1, executed=0)


CHECKS = [name.removeprefix("check_") for name in vars(Examples) if name.startswith("check_")]


def test_of(check):
    return lambda self: self.await_check(check)


for name in CHECKS:
    setattr(Examples, "test_" + name, test_of(name))


class Conditions(unittest.TestCase):
    def test_the_condition_for_axios_retry(self):
        def refusal(status, should_retry=None):
            return {"response": {"status": status, "headers": {"x-should-retry": should_retry} if should_retry else {}}}

        table = [
            (refusal(409, "true"), True), (refusal(409, "false"), False), (refusal(502, "false"), False),
            (refusal(503), True), (refusal(500), False), (refusal(409), False),
            ({"code": "ECONNRESET"}, True), ({"code": "ECONNABORTED"}, True), ({"code": "ERR_CANCELED"}, False)]
        program = AXIOS % example("axios-retry")
        result = subprocess.run(
            ["node", "-e", program, "axios", json.dumps([failure for failure, _ in table])], capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(json.loads(result.stdout), [wanted for _, wanted in table])


class Page(unittest.TestCase):
    def test_each_example_is_tried(self):
        tried = [example(heading) for heading in (
            "requests and urllib3", "httpx with tenacity", "axios-retry", "got", "boto3", "Stripe's libraries")]
        self.assertEqual(sorted(re.findall(r"^```\w+\n(.*?)^```$", PAGE, re.M | re.S)), sorted(tried))


if __name__ == "__main__":
    unittest.main()
