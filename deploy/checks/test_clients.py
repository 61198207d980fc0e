"""The programs in deploy/clients.md, run against Semel. Run by deploy/test; SEMEL_BINARY names the binary."""

import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import time
import unittest
import urllib.request

import clients

ORDER = '{"item":"book"}'


class Case(unittest.TestCase):
    """One Semel and one backend for all tests; each language has paths of its own there."""

    @classmethod
    def setUpClass(cls):
        folder = clients.temporary_folder()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        (cls.folder / "programs").mkdir()
        cls.programs = clients.Programs(cls.folder / "programs")
        cls.backend = clients.Backend()
        cls.addClassCleanup(cls.backend.stop)
        cls.semel = clients.Semel(cls.folder, cls.backend)
        cls.addClassCleanup(cls.semel.stop)


class Client:
    """An application in one language, with a folder of its own."""

    def __init__(self, case, language):
        self.case, self.language = case, language
        self.home = case.folder / f"{case.id()}-{language}"
        self.home.mkdir()
        (self.home / "token").write_text("fresh\n")

    def network(self, **faults):
        network = clients.Network(self.case.semel.port, **faults)
        self.case.addCleanup(network.close)
        return network

    def path(self, script):
        return f"/v1/{self.language}-{self.case._testMethodName}/{script}"

    def start(self, script, port=None, body=ORDER, **variables):
        url = f"http://127.0.0.1:{port or self.case.semel.port}{self.path(script)}"
        return self.case.programs.start(self.language, self.home, url, "cart-17", body, **variables)

    def end(self, process):
        output, errors = process.communicate(timeout=clients.PATIENCE)
        self.case.assertEqual(process.returncode, 0, errors)
        return output.strip()

    def order(self, script, port=None, body=ORDER, **variables):
        return self.end(self.start(script, port, body, **variables))

    def expect(self, script, *, attempts, executed):
        """The backend got so many attempts, all of them with one key and the same bytes."""
        seen = self.case.backend.attempts[self.path(script)]
        self.case.assertEqual(len(seen), attempts)
        self.case.assertEqual(len(set(seen)), 1 if attempts else 0)
        self.case.assertEqual(self.case.backend.executed[self.path(script)], executed)

    def age(self, seconds):
        """Makes the stored intents older."""
        for file in (path for path in self.home.rglob("*") if path.is_file()):
            text = re.sub(r'(at\\?":\s*)([\d.]+)', lambda m: m[1] + self.earlier(m[2], seconds), file.read_text())
            file.write_text(text)
            os.utime(file, (time.time() - seconds,) * 2)

    @staticmethod
    def earlier(stamp, seconds):
        return str(int(stamp) - 1000 * seconds if stamp.isdigit() and len(stamp) > 11 else float(stamp) - seconds)


class Examples(Case):
    """Each check of each language runs beside others, since they mostly wait; the tests await them."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.programs.compile()
        pool = concurrent.futures.ThreadPoolExecutor(8)
        cls.addClassCleanup(pool.shutdown)
        cls.runs = {
            (check, language): pool.submit(cls.run_check, check, language)
            for check in vars(cls) if check.startswith("check_") for language in cls.programs.commands}

    @classmethod
    def run_check(cls, check, language):
        case = cls("test_" + check.removeprefix("check_"))
        try:
            getattr(case, check)(Client(case, language))
        finally:
            case.doCleanups()

    def await_check(self, check):
        for language in self.programs.commands:
            with self.subTest(language):
                self.runs[check, language].result()

    def test_all_languages_are_here(self):
        reason = f"not installed: {self.programs.missing}"
        if self.programs.missing and not os.environ.get("SEMEL_TEST_ALL"):
            self.skipTest(reason)
        self.assertFalse(self.programs.missing, reason)

    def check_a_response_that_may_be_repeated_is(self, client):
        self.assertEqual(client.order("busy"), 'response 201 {"order": 1}')
        client.expect("busy", attempts=3, executed=1)

    def check_a_lost_response_is_replayed(self, client):
        network = client.network(lose_when=lambda server: server.recv(1))
        self.assertEqual(client.order("plain", network.port), 'response 201 {"order": 1}')
        self.assertIn(b"Idempotency-Status: replayed", network.received)
        client.expect("plain", attempts=1, executed=1)

    def check_a_gateway_that_gave_up_is_tried_again(self, client):
        timeout = b"HTTP/1.1 504 Gateway Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        network = client.network(lose_when=lambda server: server.recv(1), instead=timeout)
        self.assertEqual(client.order("plain", network.port), 'response 201 {"order": 1}')
        client.expect("plain", attempts=1, executed=1)

    def check_a_connection_lost_in_flight_leads_to_the_first_outcome(self, client):
        path = client.path("held")
        network = client.network(lose_when=lambda _: clients.until(lambda: self.backend.attempts[path]))
        process = client.start("held", network.port)
        network.until(b'"code":"in_flight"')
        self.backend.released[path].set()
        self.assertEqual(client.end(process), 'response 201 {"order": 1}')
        client.expect("held", attempts=1, executed=1)

    def check_another_payload_is_not_sent_again(self, client):
        self.assertEqual(client.order("plain"), 'response 201 {"order": 1}')
        network = client.network(change=(b"book", b"bike"))
        self.assertRegex(client.order("plain", network.port), '^response 409 .*"code":"payload_mismatch"')
        self.assertEqual(network.sent.count(b"POST "), 1)
        client.expect("plain", attempts=1, executed=1)

    def check_another_body_under_a_known_name_is_not_sent(self, client):
        self.assertEqual(client.order("plain"), 'response 201 {"order": 1}')
        self.assertRegex(client.order("plain", body='{"item":"car"}'), "^mismatch [-0-9A-Fa-f]{36}$")
        self.assertEqual(client.order("plain"), 'response 201 {"order": 1}')
        client.expect("plain", attempts=1, executed=1)

    def check_what_ended_in_400_may_be_corrected_under_its_name(self, client):
        self.assertEqual(client.order("picky", body='{"item":"none"}'), 'response 400 {"error": "no such item"}')
        self.assertEqual(client.order("picky"), 'response 201 {"order": 1}')
        keys = {key for key, _, _ in self.backend.attempts[client.path("picky")]}
        self.assertEqual(len(keys), 2)

    def check_an_unknown_outcome_is_called_that_until_an_operator_knows(self, client):
        self.assertRegex(client.order("cut"), "^unknown [-0-9A-Fa-f]{36}$")
        self.assertRegex(client.order("cut"), "^unknown [-0-9A-Fa-f]{36}$")
        client.expect("cut", attempts=1, executed=0)
        [(_, _, record)] = self.backend.attempts[client.path("cut")]
        resolved = self.semel.run("key", "resolve", "--id", record, "--applied", "--status", "201")
        self.assertEqual(resolved.returncode, 0, resolved.stderr)
        self.assertEqual(client.order("cut"), "response 201")
        client.expect("cut", attempts=1, executed=0)

    def check_it_gives_up_in_time_and_resumes_with_the_same_key(self, client):
        self.assertRegex(client.order("down", PATIENCE=4), "^unknown ")
        before = len(self.backend.attempts[client.path("down")])
        self.assertGreaterEqual(before, 1)
        self.backend.repaired.add(client.path("down"))
        self.assertEqual(client.order("down"), 'response 201 {"order": 1}')
        client.expect("down", attempts=before + 1, executed=1)

    def check_a_silent_server_is_not_waited_for_longer(self, client):
        self.assertRegex(client.order("held", PATIENCE=4), "^unknown ")
        self.backend.released[client.path("held")].set()
        self.assertEqual(client.order("held"), 'response 201 {"order": 1}')
        client.expect("held", attempts=1, executed=1)

    def check_an_outcome_is_final_also_if_it_is_an_error(self, client):
        self.assertEqual(client.order("broken"), 'response 503 {"error": "half done"}')
        client.expect("broken", attempts=1, executed=0)

    def check_new_credentials_come_with_the_same_key(self, client):
        (client.home / "token").write_text("stale\n")
        self.assertEqual(client.order("guarded"), 'response 401 {"error": "expired"}')
        (client.home / "token").write_text("fresh\n")
        self.assertEqual(client.order("guarded"), 'response 201 {"order": 1}')
        client.expect("guarded", attempts=2, executed=1)

    def check_an_intent_past_its_retention_is_not_sent(self, client):
        self.assertEqual(client.order("plain"), 'response 201 {"order": 1}')
        client.age(seconds=25 * 3600)
        network = client.network()
        self.assertRegex(client.order("plain", network.port), "^unknown ")
        self.assertEqual(network.sent, b"")

    def check_two_taps_are_one_intent(self, client):
        # Two processes; in the browser two calls of one page.
        taps = {"TAPS": 2} if client.language == "javascript" else {}
        processes = [client.start("plain", **taps) for _ in range(1 if taps else 2)]
        lines = [line for process in processes for line in client.end(process).splitlines()]
        self.assertEqual(lines, ['response 201 {"order": 1}'] * 2)
        client.expect("plain", attempts=1, executed=1)


def test_of(check):
    return lambda self: self.await_check(check)


for check in [name for name in vars(Examples) if name.startswith("check_")]:
    setattr(Examples, "test_" + check.removeprefix("check_"), test_of(check))


class Page(Case):
    def outcome(self, path, key):
        home = self.folder / "outcome"
        home.mkdir(exist_ok=True)
        (home / "token").write_text("fresh\n")
        command = ["bash", self.folder / "programs/outcome.sh", f"http://127.0.0.1:{self.semel.port}", path, key]
        return json.loads(subprocess.run(command, cwd=home, capture_output=True, text=True, check=True).stdout)

    def test_the_outcome_of_an_intent(self):
        if "bash" in self.programs.missing and not os.environ.get("SEMEL_TEST_ALL"):
            self.skipTest("there is no curl on this machine")
        path = "/v1/outcome/plain"
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.semel.port}{path}", ORDER.encode(),
            {"Content-Type": "application/json", "Idempotency-Key": "intent-1"})
        urllib.request.urlopen(request).close()
        state = self.outcome(path, "intent-1")
        self.assertEqual((state["state"], state["status"]), ("completed", 201))
        self.assertEqual(self.outcome(path, "intent-2")["state"], "absent")

    def test_the_problem_codes_are_those_of_the_binary(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.semel.port}/.well-known/idempotency") as response:
            problems = json.load(response)["problems"]
        words = {True: "yes", False: "no", None: "as it says"}
        known = {problem["code"]: words[problem.get("retryable")] for problem in problems}
        [section] = re.findall(r"^## Problem codes$(.*?)^## ", clients.PAGE, re.M | re.S)
        rows = re.findall(r"^\| (`[^|]*) \| ([^|]*) \|", section, re.M)
        listed = {code: word for codes, word in rows for code in re.findall(r"`(\w+)`", codes)}
        self.assertEqual({code: word for code, word in listed.items() if code != "code"}, known)


if __name__ == "__main__":
    unittest.main()
