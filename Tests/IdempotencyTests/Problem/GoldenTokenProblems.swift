/// The documents of the refusals that tokens cause, in the order of `ProblemTests.tokens`.
let goldenTokenProblems = #"""
  Content-Type: application/problem+json
  Cache-Control: no-store
  Link: </.well-known/idempotency#caller_unknown>; rel="describedby"
  X-Should-Retry: false
  WWW-Authenticate: Bearer
  {"type":"/.well-known/idempotency#caller_unknown","title":"The caller is not known","status":401,"detail":"Say who you are by a token with the claim sub, which this request lacks; this resource keeps every caller's keys apart.","code":"caller_unknown","retryable":false}

  Content-Type: application/problem+json
  Cache-Control: no-store
  Link: </.well-known/idempotency#caller_unknown>; rel="describedby"
  X-Should-Retry: false
  WWW-Authenticate: Bearer error="invalid_token"
  {"type":"/.well-known/idempotency#caller_unknown","title":"The caller is not known","status":401,"detail":"Send one Authorization field; this request has several.","code":"caller_unknown","retryable":false}

  Content-Type: application/problem+json
  Cache-Control: no-store
  Link: </.well-known/idempotency#caller_unknown>; rel="describedby"
  X-Should-Retry: false
  WWW-Authenticate: Bearer
  {"type":"/.well-known/idempotency#caller_unknown","title":"The caller is not known","status":401,"detail":"Send a bearer token in the Authorization field; this one has another scheme.","code":"caller_unknown","retryable":false}

  Content-Type: application/problem+json
  Cache-Control: no-store
  Link: </.well-known/idempotency#caller_unknown>; rel="describedby"
  X-Should-Retry: false
  WWW-Authenticate: Bearer error="invalid_token"
  {"type":"/.well-known/idempotency#caller_unknown","title":"The caller is not known","status":401,"detail":"Send a signed JSON Web Token in its compact form; this token cannot be read.","code":"caller_unknown","retryable":false}

  Content-Type: application/problem+json
  Cache-Control: no-store
  Link: </.well-known/idempotency#caller_unknown>; rel="describedby"
  X-Should-Retry: false
  WWW-Authenticate: Bearer error="invalid_token"
  {"type":"/.well-known/idempotency#caller_unknown","title":"The caller is not known","status":401,"detail":"Send a token that is signed with a key and an algorithm that are accepted here.","code":"caller_unknown","retryable":false}

  Content-Type: application/problem+json
  Cache-Control: no-store
  Link: </.well-known/idempotency#caller_unknown>; rel="describedby"
  X-Should-Retry: false
  WWW-Authenticate: Bearer error="invalid_token"
  {"type":"/.well-known/idempotency#caller_unknown","title":"The caller is not known","status":401,"detail":"Get a new token and send the request again with the same key; this token has expired.","code":"caller_unknown","retryable":false}

  Content-Type: application/problem+json
  Cache-Control: no-store
  Link: </.well-known/idempotency#caller_unknown>; rel="describedby"
  X-Should-Retry: false
  WWW-Authenticate: Bearer error="invalid_token"
  {"type":"/.well-known/idempotency#caller_unknown","title":"The caller is not known","status":401,"detail":"Send the request again with the same key once the token is valid; its time has not come.","code":"caller_unknown","retryable":false}

  Content-Type: application/problem+json
  Cache-Control: no-store
  Link: </.well-known/idempotency#caller_unknown>; rel="describedby"
  X-Should-Retry: false
  WWW-Authenticate: Bearer error="invalid_token"
  {"type":"/.well-known/idempotency#caller_unknown","title":"The caller is not known","status":401,"detail":"Send a token of the issuer and for the audience that are accepted here.","code":"caller_unknown","retryable":false}

  Content-Type: application/problem+json
  Cache-Control: no-store
  Link: </.well-known/idempotency#caller_unknown>; rel="describedby"
  X-Should-Retry: true
  Retry-After: 5
  WWW-Authenticate: Bearer
  {"type":"/.well-known/idempotency#caller_unknown","title":"The caller is not known","status":401,"detail":"Send the request again later with the same key; the keys that verify tokens are not available, and this delivery was not executed.","code":"caller_unknown","retryable":true}

  """#
