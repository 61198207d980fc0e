"""The binary under test, which SEMEL_BINARY names, and its verdict on a configuration."""

import base64
import hashlib
import os
import pathlib
import re
import subprocess
import tempfile

DEPLOY = pathlib.Path(__file__).resolve().parent.parent
BINARY = os.environ.get("SEMEL_BINARY", str(DEPLOY.parent / ".build/debug/semel"))


def check_configuration(test, text):
    """`semel check` takes the configuration. Its secrets are files of the test's own."""
    with tempfile.TemporaryDirectory() as folder:
        for path in re.findall(r"/run/secrets/semel/([\w.-]+)", text):
            # Different ones, each good for a password and, in base64, for encryption.
            secret = base64.b64encode(hashlib.sha256(path.encode()).digest())
            (pathlib.Path(folder) / path).write_bytes(secret)
        file = pathlib.Path(folder) / "semel.yaml"
        file.write_text(text.replace("/run/secrets/semel", folder))
        result = subprocess.run(
            [BINARY, "check", str(file)], capture_output=True, text=True,
            env={**os.environ, "REDIS_PASSWORD": "x"})
        test.assertEqual(result.returncode, 0, result.stdout + result.stderr)
