"""Makes keys, and tokens that are signed with them, by PyJWT.

Argument: JSON such as {"keys": {"a": "RSA"}, "tokens": [{"key": "a", "algorithm": "RS256", "claims": {"sub": "alice"}}]}.
Times in claims are in seconds from now. A token may have a "kid" of its own, null for none, and a "forgery". Prints
{"keys": {"a": JWK}, "tokens": [TEXT]}.
"""
import base64
import hashlib
import hmac
import json
import sys
import time

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

MAKERS = {
    "RSA": (lambda: rsa.generate_private_key(65537, 2048), RSAAlgorithm),
    "EC": (lambda: ec.generate_private_key(ec.SECP256R1()), ECAlgorithm),
    "OKP": (ed25519.Ed25519PrivateKey.generate, OKPAlgorithm),
}


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def signing_input(header, claims):
    return encoded(json.dumps(header).encode()) + b"." + encoded(json.dumps(claims).encode())


def token(wanted, keys):
    claims = dict(wanted["claims"])
    for name in ("exp", "nbf", "iat"):
        if name in claims:
            claims[name] += int(time.time())
    kid = wanted.get("kid", wanted.get("key"))
    headers = {"kid": kid} if kid else {}
    forgery = wanted.get("forgery")
    if forgery == "none":
        return jwt.encode(claims, None, algorithm="none", headers=headers)
    if forgery == "public key as secret":
        public = keys[wanted["key"]].public_key()
        secret = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        signed = signing_input({"alg": "HS256", **headers}, claims)
        return (signed + b"." + encoded(hmac.new(secret, signed, hashlib.sha256).digest())).decode()
    if "secret" in wanted:
        return jwt.encode(claims, wanted["secret"], algorithm=wanted["algorithm"], headers=headers)
    text = jwt.encode(claims, keys[wanted["key"]], algorithm=wanted["algorithm"], headers=headers)
    if forgery == "other payload":
        header, _, signature = text.split(".")
        return header + "." + encoded(json.dumps({**claims, "sub": "mallory"}).encode()).decode() + "." + signature
    return text


wanted = json.loads(sys.argv[1])
keys = {name: MAKERS[kind][0]() for name, kind in wanted["keys"].items()}
documents = {
    name: {**MAKERS[kind][1].to_jwk(keys[name].public_key(), as_dict=True), "kid": name, "use": "sig"}
    for name, kind in wanted["keys"].items()
}
print(json.dumps({"keys": documents, "tokens": [token(each, keys) for each in wanted["tokens"]]}))
