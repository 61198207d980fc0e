"""Drives the admin API by schemathesis, from its own description: admin_schemathesis.py BASE.

Sends what the description allows and what it does not, from a fixed seed, so that a fault is found again. Prints whether all
responses are ones that it has."""

import json
import subprocess
import sys
import tempfile

[BASE] = sys.argv[1:]
CHECKS = ["not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance"]

# It leaves a folder of its own where it runs.
with tempfile.TemporaryDirectory() as folder:
    found = subprocess.run(
        [sys.executable, "-m", "schemathesis.cli", "run", BASE + "/v1/openapi.json", "--checks", ",".join(CHECKS),
         "--max-examples", "5", "--seed", "1", "--generation-database", "none", "--no-color", "--phases", "coverage,fuzzing"],
        cwd=folder, capture_output=True, text=True)
print(json.dumps({"code": found.returncode, "output": found.stdout + found.stderr}))
