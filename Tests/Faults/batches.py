"""Batches on the wire: requests of several items, each of which is an intent of its own, and responses to them."""

import hashlib
import json

RULE = "batch"
PATH = f"/{RULE}"

# The forms of the backend's results, as shares of a hundred. These fit their items.
FITTING = {"shuffled": 10, "keyless": 10}
# Of these it is not certain which result is which item's: each item is unknown.
ODD = {
    "too few": 3,
    "too many": 1,
    "foreign key": 2,
    "a key twice": 1,
    "partly keyed": 2,
    "a member twice": 1,
    "no JSON": 1,
    "compressed": 1,
}
# With one result these fit.
OF_SEVERAL = ("a key twice", "partly keyed")


def request_body(orders, currency):
    return json.dumps({"orders": orders, "currency": currency}).encode()


def order(caller, key, is_other):
    """An item, of which there are two payloads."""
    return {"id": key, "item": f"{key} of {caller}"} | ({"other": True} if is_other else {})


def print_of(order_, currency):
    """The digest of an item's payload, of which the batch's surroundings are a part."""
    text = json.dumps([order_, currency], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def items(body):
    """Returns the key and the digest of each item of a request."""
    document = json.loads(body)
    return [(each["id"], print_of(each, document["currency"])) for each in document["orders"]]


def fits(form, count):
    """Whether results of this form are certainly those of so many items."""
    return form not in ODD or (form in OF_SEVERAL and count == 1)


def response_body(form, results, around):
    """A backend's response of this form."""
    if form in OF_SEVERAL and len(results) == 1:
        form = "plain"
    text = json.dumps({"results": formed(form, results)} | around)
    if form == "a member twice":
        text = text[:-1] + ', "took": 1, "took": 1}'
    return (text[:-1] if form == "no JSON" else text).encode()


def formed(form, results):
    match form:
        case "shuffled":
            return [*results[1:], results[0]]
        case "keyless":
            return [keyless(result) for result in results]
        case "partly keyed":
            return [*results[:-1], keyless(results[-1])]
        case "too few":
            return results[:-1]
        case "too many":
            return [*results, results[0]]
        case "foreign key":
            return [*results[:-1], results[-1] | {"id": "another"}]
        case "a key twice":
            return [*results[:-1], results[-1] | {"id": results[0]["id"]}]
        case _:
            return results


def keyless(result):
    return {name: value for name, value in result.items() if name != "id"}


def elements(text):
    """The text of each element of a response's results, byte for byte."""
    decoder = json.JSONDecoder()
    found, at = [], text.index("[", text.index('"results"')) + 1
    while True:
        while text[at] in " \t\r\n,":
            at += 1
        if text[at] == "]":
            return found
        _, end = decoder.raw_decode(text, at)
        found.append(text[at:end])
        at = end
