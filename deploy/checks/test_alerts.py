"""The alerts of deploy/monitoring/alerts.yaml by promtool: what wakes nobody, and what does. Run by deploy/test."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import runbooks
import yaml

ROUTE = '{route="create-order",instance="orders-1:8081"}'
REFUSED = '{route="create-order",reason="%s",instance="orders-1:8081"}'
STORE = '{command="claim",reason="unavailable",instance="orders-1:8081"}'
RETURNS, LOST = "semel_unknown_returns_total" + ROUTE, "semel_outcomes_lost_total" + ROUTE
UNKNOWN = '{state="unknown",instance="orders-1:8081"}'

# A month, in samples of five minutes.
MONTH = 30 * 24 * 12

# Series by promtool's notation, a sample a minute after five quiet ones. None of them pages.
BENIGN = {
    "responses are lost where later deliveries take the record over": {
        LOST: "0x5 5x90", RETURNS: "0x95", "semel_refusals_total" + REFUSED % "outcome_unknown": "0x5 15x90",
    },
    "two clients wait for an operator": {RETURNS: "0x5 1x10 2x80", "semel_open_records" + UNKNOWN: "0x5 2x90"},
    "one client waits, and meets each of four nodes": {
        f'semel_unknown_returns_total{{route="create-order",instance="orders-{node}:8081"}}': "0x5 1x90" for node in range(4)
    },
    "one client waits while the node is restarted": {RETURNS: "0x5 1x30 0x2 1x60", "up" + ROUTE: "1x95"},
    "one command of the store times out": {"semel_store_errors_total" + STORE: "_x5 1x90"},
    "the store is slow for a minute": {"semel_store_errors_total" + STORE: "0x5 12x90"},
    "one request finds no room": {"semel_refusals_total" + REFUSED % "overloaded": "0x5 1x90"},
    "there is too much for a minute": {"semel_refusals_total" + REFUSED % "overloaded": "0x5 900x90"},
}

# The same, and the alert that must fire.
PAGING = {
    "three clients come back between two scrapes": ("SemelClientsMeetUnknown", {RETURNS: "0x5 3x90"}),
    "a process is killed, and what it held is added to many": (
        "SemelOutcomesGrow", {"semel_open_records" + UNKNOWN: "10000x5 10020x90"}),
    "twenty clients come back": ("SemelClientsMeetUnknown", {RETURNS: "0x5 0+2x10 20x80"}),
    "the store fails for some minutes": ("SemelStoreFails", {"semel_store_errors_total" + STORE: "0x5 0+1x7 7x80"}),
    "there is too much for some minutes": (
        "SemelOverloaded", {"semel_refusals_total" + REFUSED % "overloaded": "0x5 0+30x7 210x80"}),
    "a new node begins on an older copy of its store": ("SemelStoreForgot", {"semel_store_losses_total" + ROUTE: "_x5 1x90"}),
    "a node is started again on an older copy": ("SemelStoreForgot", {"semel_store_losses_total" + ROUTE: "0x70 1x90"}),
}

PAGES = 'count by (alertname) (max_over_time(ALERTS{alertstate="firing",severity="page"}[40d]))'


@unittest.skipUnless(shutil.which("promtool") or os.environ.get("SEMEL_TEST_ALL"), "no promtool on this machine")
class Alerts(unittest.TestCase):
    def verdict(self, series, alert, step="1m", end="160m"):
        """The objections of promtool, if this alert alone is to page until the end; None for none."""
        expected = [{"labels": f'{{alertname="{alert}"}}', "value": 1}] if alert else []
        with tempfile.TemporaryDirectory(prefix="semel-alerts-") as folder:
            file = pathlib.Path(folder) / "alerts.test.yaml"
            file.write_text(yaml.safe_dump({
                "rule_files": [str(runbooks.ALERTS)], "evaluation_interval": step,
                "tests": [{
                    "interval": step,
                    "input_series": [{"series": name, "values": values} for name, values in series.items()],
                    "promql_expr_test": [{"expr": PAGES, "eval_time": end, "exp_samples": expected}]}]}))
            ended = subprocess.run(["promtool", "test", "rules", str(file)], capture_output=True, text=True)
            return ended.stdout + ended.stderr if ended.returncode else ""

    def test_nobody_is_woken_by_what_needs_nobody(self):
        for name, series in BENIGN.items():
            with self.subTest(name):
                self.assertEqual(self.verdict(series, None), "")

    def test_one_unknown_outcome_of_a_month_wakes_nobody_while_its_client_retries(self):
        series = {
            "semel_open_records" + UNKNOWN: f"0x5 1x{MONTH}",
            "semel_oldest_open_record_seconds" + UNKNOWN: f"0x5 0+300x{MONTH}",
            RETURNS: f"0x5 1x{MONTH}",
            "semel_refusals_total" + REFUSED % "outcome_unknown": f"0x5 1+1x{MONTH}",
        }
        self.assertEqual(self.verdict(series, None, "5m", f"{5 * MONTH}m"), "")

    def test_somebody_is_woken_by_what_needs_somebody(self):
        for name, (alert, series) in PAGING.items():
            with self.subTest(name):
                self.assertEqual(self.verdict(series, alert), "")


if __name__ == "__main__":
    unittest.main()
