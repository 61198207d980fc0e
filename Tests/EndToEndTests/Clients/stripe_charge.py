"""Creates a charge with Stripe's SDK, which retries by itself under a key of its own making.

Arguments: the base URL, and the client's time-out in seconds. Prints the charge as JSON.
"""
import json
import sys

import stripe

base, timeout = sys.argv[1], float(sys.argv[2])
stripe.api_key = "sk_test_semel"
stripe.api_base = base
stripe.max_network_retries = 5
stripe.default_http_client = stripe.RequestsClient(timeout=timeout)

charge = stripe.Charge.create(amount=1999, currency="usd", source="tok_visa", description="café")
print(json.dumps({"id": charge.id, "amount": charge.amount, "number": charge.number}))
