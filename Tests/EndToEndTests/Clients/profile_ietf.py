"""Creates counterparties with Modern Treasury's SDK, and prints as JSON what it returned and which errors it raised.

Arguments: the base URL, and the client's time-out in seconds.
"""
import json
import sys

from modern_treasury import APIStatusError, ModernTreasury

base, timeout = sys.argv[1], float(sys.argv[2])
client = ModernTreasury(
    api_key="semel", organization_id="org", base_url=base, timeout=timeout, max_retries=8)


def create(name, **options):
    made = client.counterparties.with_raw_response.create(name=name, **options)
    return [int(made.parse().id), made.headers.get("idempotent-replayed")]


def failure(action):
    try:
        return ["none", 0, str(action())]
    except APIStatusError as error:
        return [type(error).__name__, error.status_code, error.body["code"]]


print(json.dumps({
    # Under a key of the SDK's own making, and longer than its time-out; then one that meets 503 at first.
    "made": [create("a"), create("b", idempotency_key="k"), create("b", idempotency_key="k")],
    "failures": [
        failure(lambda: create("c", idempotency_key="k")),
        failure(lambda: create("c", extra_headers={"Idempotency-Key": "a,b"})),
    ],
}))
