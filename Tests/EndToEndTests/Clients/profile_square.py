"""Takes payments with Square's SDK, and prints as JSON what it returned and which of its errors it raised.

Argument: the base URL.
"""
import json
import sys
from concurrent.futures import ThreadPoolExecutor

from square import Square
from square.core.api_error import ApiError

client = Square(base_url=sys.argv[1], token="semel")


def pay(key, amount):
    made = client.payments.with_raw_response.create(
        source_id="cnon:ok", idempotency_key=key, amount_money={"amount": amount, "currency": "USD"})
    return [int(made.data.payment.id), made.headers.get("idempotent-replayed")]


def failure(action):
    try:
        return ["none", 0, str(action())]
    except ApiError as error:
        return [error.errors[0].category, error.status_code, error.errors[0].code, error.errors[0].field]


with ThreadPoolExecutor() as pool:
    # The one that is refused while the other is in flight tries again by itself.
    both = sorted(pool.map(lambda _: pay("k", 1), range(2)), key=str)
print(json.dumps({
    # The second one meets 503 at first, and tries again.
    "made": both + [pay("l", 2)],
    "failures": [failure(lambda: pay("k", 2)), failure(lambda: pay("", 2))],
}))
