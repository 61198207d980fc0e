"""Charges with Stripe's SDK, and prints as JSON what it returned and which of its errors it raised.

Arguments: the base URL, and the client's time-out in seconds.
"""
import json
import sys

import stripe

base, timeout = sys.argv[1], float(sys.argv[2])
stripe.api_key = "sk_test_semel"
stripe.api_base = base
stripe.max_network_retries = 5
stripe.default_http_client = stripe.RequestsClient(timeout=timeout)


def charge(amount, account="acct_1", **options):
    made = stripe.Charge.create(amount=amount, currency="usd", source="tok_visa", stripe_account=account, **options)
    return [made.number, made.last_response.headers.get("Idempotent-Replayed")]


def failure(action):
    try:
        return ["none", 0, str(action())]
    except stripe.StripeError as error:
        return [type(error).__name__, error.http_status, error.code or error.json_body["error"]["code"]]


print(json.dumps({
    # Under a key of the SDK's own making, and longer than its time-out.
    "made": [charge(1), charge(2, idempotency_key="k"), charge(2, idempotency_key="k")],
    "failures": [
        failure(lambda: charge(3, idempotency_key="k")),
        failure(lambda: charge(3, account=None)),
    ],
}))
