"""Places an order with urllib3, whose Retry sends again after a time-out.

Arguments: the URL, and the client's time-out in seconds. Prints status, idempotency status and body as JSON.
"""
import json
import sys

import urllib3

url, timeout = sys.argv[1], float(sys.argv[2])
retry = urllib3.Retry(
    total=8, backoff_factor=0.1, allowed_methods=["POST"], status_forcelist=[409, 502, 503, 504],
    respect_retry_after_header=True,
)
response = urllib3.PoolManager().request(
    "POST", url, body=b'{"amount":1999}', timeout=timeout, retries=retry,
    headers={"Idempotency-Key": "order-17", "Authorization": "Bearer alice", "Content-Type": "application/json"},
)
print(json.dumps({
    "status": response.status,
    "idempotency": response.headers.get("Idempotency-Status"),
    "body": response.data.decode(),
    "retries": len(response.retries.history),
}))
