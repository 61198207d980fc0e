"""Creates orders with PayPal's SDK, and prints as JSON what it returned and which of its errors it raised.

Arguments: the base URL, and the client's time-out in seconds.
"""
import json
import sys

from paypalserversdk.configuration import Configuration, Environment, Server
from paypalserversdk.exceptions.error_exception import ErrorException
from paypalserversdk.http.auth.o_auth_2 import ClientCredentialsAuthCredentials
from paypalserversdk.models.amount_with_breakdown import AmountWithBreakdown
from paypalserversdk.models.order_request import OrderRequest
from paypalserversdk.models.purchase_unit_request import PurchaseUnitRequest
from paypalserversdk.paypal_serversdk_client import PaypalServersdkClient

Configuration.environments[Environment.SANDBOX][Server.DEFAULT] = sys.argv[1]
client = PaypalServersdkClient(
    timeout=float(sys.argv[2]), max_retries=8, backoff_factor=0.5, retry_methods=["POST"],
    # It gets its token through the proxy, too.
    client_credentials_auth_credentials=ClientCredentialsAuthCredentials("id", "secret"))


def order(key, value):
    unit = PurchaseUnitRequest(amount=AmountWithBreakdown(currency_code="USD", value=value))
    request = {"body": OrderRequest(intent="CAPTURE", purchase_units=[unit]), "prefer": "return=representation"}
    if key:
        request["paypal_request_id"] = key
    made = client.orders.create_order(request)
    headers = {name.lower(): value for name, value in made.headers.items()}
    return [int(made.body.id), headers.get("idempotent-replayed")]


def failure(action):
    try:
        return ["none", 0, str(action())]
    except ErrorException as error:
        detail = error.details[0]
        return [error.name, error.response_code, detail.issue, detail.location]


print(json.dumps({
    # The first one takes longer than the time-out. Keys are optional.
    "made": [order("k", "1"), order("k", "1"), order(None, "1"), order(None, "1")],
    "failures": [failure(lambda: order("k", "2"))],
}))
