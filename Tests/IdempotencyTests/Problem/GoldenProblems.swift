/// The documents of all problems, in the order of `ProblemTests.all`, each after those of its fields that not every
/// problem has. A changed line here is a changed response.
let goldenProblems = #"""
  {"type":"/.well-known/idempotency#bad_request","title":"The request cannot be read safely","status":400,"detail":"Send a request that follows the protocol to the letter; this one cannot be read in only one way.","code":"bad_request","retryable":false}
  {"type":"/.well-known/idempotency#bad_request","title":"The request cannot be read safely","status":400,"detail":"Send the path without encoded slashes, backslashes and NUL bytes, without raw backslashes, and without parameters on dot segments.","code":"bad_request","retryable":false}
  {"type":"/.well-known/idempotency#bad_request","title":"The request cannot be read safely","status":400,"detail":"Do not name fields that identify the request, such as those of its key, its caller or its content type, in the Connection field.","code":"bad_request","retryable":false}
  {"type":"/.well-known/idempotency#bad_request","title":"The request cannot be read safely","status":400,"detail":"Send the method in capitals; methods are case-sensitive.","code":"bad_request","retryable":false}
  {"type":"/.well-known/idempotency#bad_request","title":"The request cannot be read safely","status":400,"detail":"Send one field that overrides the method, once and with one method; this request names several.","code":"bad_request","retryable":false}
  {"type":"/.well-known/idempotency#bad_request","title":"The request cannot be read safely","status":400,"detail":"Send the overriding method as the request's own; a key protects both methods here, and it would be uncertain which of them ran.","code":"bad_request","retryable":false}
  {"type":"/.well-known/idempotency#bad_request","title":"The request cannot be read safely","status":400,"detail":"Ask by the parameters method and path, and by key, attach and response where they are wanted, each percent-encoded and once.","code":"bad_request","retryable":false}
  {"type":"/.well-known/idempotency#bad_request","title":"The request cannot be read safely","status":400,"detail":"Send JSON with the items in an array, at the place that the API documents, at least one of them, and without a member that stands twice.","code":"bad_request","retryable":false}
  {"type":"/.well-known/idempotency#bad_request","title":"The request cannot be read safely","status":400,"detail":"Send fewer items at once; keep the key of each.","code":"bad_request","retryable":false}
  {"type":"/.well-known/idempotency#key_missing","title":"An idempotency key is required","status":400,"detail":"Put a unique key for this operation into the idempotency-key header field, and send the same key with every retry of it.","code":"key_missing","retryable":false}
  {"type":"/.well-known/idempotency#key_missing","title":"An idempotency key is required","status":400,"detail":"Put a unique key for this operation into the query parameter key, and send the same key with every retry of it.","code":"key_missing","retryable":false}
  {"type":"/.well-known/idempotency#key_missing","title":"An idempotency key is required","status":400,"detail":"Put a unique key for this operation into the JSON body's member /id, and send the same key with every retry of it.","code":"key_missing","retryable":false}
  {"type":"/.well-known/idempotency#key_missing","title":"An idempotency key is required","status":400,"detail":"Put a unique key for this operation into the form field key, and send the same key with every retry of it.","code":"key_missing","retryable":false}
  {"type":"/.well-known/idempotency#key_not_supported","title":"Idempotency keys are not supported here","status":400,"detail":"Check the method and the path, or send the request without an idempotency key; a retry of it is not protected here.","code":"key_not_supported","retryable":false}
  {"type":"/.well-known/idempotency#key_invalid","title":"The idempotency key is not valid","status":400,"detail":"Send the idempotency key once; it stands in the request more than once.","code":"key_invalid","retryable":false}
  {"type":"/.well-known/idempotency#key_invalid","title":"The idempotency key is not valid","status":400,"detail":"Send the idempotency key bare, or as one whole quoted string with nothing before or behind it.","code":"key_invalid","retryable":false}
  {"type":"/.well-known/idempotency#key_invalid","title":"The idempotency key is not valid","status":400,"detail":"Send one idempotency key without a comma, or put it in quotes.","code":"key_invalid","retryable":false}
  {"type":"/.well-known/idempotency#key_invalid","title":"The idempotency key is not valid","status":400,"detail":"Use only visible ASCII characters in the idempotency key, and no spaces.","code":"key_invalid","retryable":false}
  {"type":"/.well-known/idempotency#key_invalid","title":"The idempotency key is not valid","status":400,"detail":"Use an idempotency key of at most 255 characters.","code":"key_invalid","retryable":false}
  {"type":"/.well-known/idempotency#key_invalid","title":"The idempotency key is not valid","status":400,"detail":"Use an idempotency key of at least 1 characters.","code":"key_invalid","retryable":false}
  {"type":"/.well-known/idempotency#key_invalid","title":"The idempotency key is not valid","status":400,"detail":"Use a UUID as the idempotency key, such as a random one of version 4.","code":"key_invalid","retryable":false}
  {"type":"/.well-known/idempotency#key_invalid","title":"The idempotency key is not valid","status":400,"detail":"Percent-encode the idempotency key so that two hexadecimal digits follow every percent sign.","code":"key_invalid","retryable":false}
  {"type":"/.well-known/idempotency#key_invalid","title":"The idempotency key is not valid","status":400,"detail":"Send the idempotency key as a JSON string or an integer.","code":"key_invalid","retryable":false}
  WWW-Authenticate: Bearer
  {"type":"/.well-known/idempotency#caller_unknown","title":"The caller is not known","status":401,"detail":"Say who you are by the authorization header field, which this request lacks; this resource keeps every caller's keys apart.","code":"caller_unknown","retryable":false}
  {"type":"/.well-known/idempotency#caller_unknown","title":"The caller is not known","status":401,"detail":"Say who you are by the x-user header field, which this request lacks; this resource keeps every caller's keys apart.","code":"caller_unknown","retryable":false}
  {"type":"/.well-known/idempotency#caller_unknown","title":"The caller is not known","status":401,"detail":"Say who you are by the cookie session, which this request lacks; this resource keeps every caller's keys apart.","code":"caller_unknown","retryable":false}
  {"type":"/.well-known/idempotency#caller_unknown","title":"The caller is not known","status":401,"detail":"Say who you are by an address that is known here, which this request lacks; this resource keeps every caller's keys apart.","code":"caller_unknown","retryable":false}
  {"type":"/.well-known/idempotency#caller_unknown","title":"The caller is not known","status":401,"detail":"Say who you are by a client certificate, which this request lacks; this resource keeps every caller's keys apart.","code":"caller_unknown","retryable":false}
  {"type":"/.well-known/idempotency#caller_unknown","title":"The caller is not known","status":401,"detail":"Say who you are by a client certificate with a subject, which this request lacks; this resource keeps every caller's keys apart.","code":"caller_unknown","retryable":false}
  {"type":"/.well-known/idempotency#caller_unknown","title":"The caller is not known","status":401,"detail":"Say who you are by a client certificate with alternative names, which this request lacks; this resource keeps every caller's keys apart.","code":"caller_unknown","retryable":false}
  WWW-Authenticate: Bearer
  {"type":"/.well-known/idempotency#caller_unknown","title":"The caller is not known","status":401,"detail":"Send the authorization header field once; this request has it more than once.","code":"caller_unknown","retryable":false}
  {"type":"/.well-known/idempotency#caller_unknown","title":"The caller is not known","status":401,"detail":"Send the cookie session once; this request has it more than once.","code":"caller_unknown","retryable":false}
  WWW-Authenticate: Bearer
  {"type":"/.well-known/idempotency#caller_unknown","title":"The caller is not known","status":401,"detail":"Use credentials that stay the same when the request is retried; this Authorization scheme is not known to.","code":"caller_unknown","retryable":false}
  {"type":"/.well-known/idempotency#caller_unknown","title":"The caller is not known","status":401,"detail":"Send the query parameter account so that it can be read: percent-encoded in a query, as a string or an integer in JSON.","code":"caller_unknown","retryable":false}
  {"type":"/.well-known/idempotency#caller_unknown","title":"The caller is not known","status":401,"detail":"Send the JSON body's member /account so that it can be read: percent-encoded in a query, as a string or an integer in JSON.","code":"caller_unknown","retryable":false}
  {"type":"/.well-known/idempotency#payload_mismatch","title":"The idempotency key was used with another payload","status":409,"detail":"Use a new key for a new operation, or retry with exactly the payload that was first sent with this key.","code":"payload_mismatch","retryable":false}
  {"type":"/.well-known/idempotency#payload_mismatch","title":"The idempotency key was used with another payload","status":422,"detail":"Use a new key for a new operation, or retry with exactly the payload that was first sent with this key.","code":"payload_mismatch","retryable":false}
  {"type":"/.well-known/idempotency#payload_mismatch","title":"The idempotency key was used with another payload","status":400,"detail":"Use a new key for a new operation, or retry with exactly the payload that was first sent with this key.","code":"payload_mismatch","retryable":false}
  Retry-After: 2
  {"type":"/.well-known/idempotency#in_flight","title":"A request with this idempotency key is in progress","status":409,"detail":"Wait and send the same request with the same key again; the first delivery of it has not ended yet.","code":"in_flight","retryable":true}
  Retry-After: 30
  {"type":"/.well-known/idempotency#outcome_unknown","title":"The outcome of the request is not known","status":409,"detail":"Send the same request with the same key again later; whether this one was executed is not known yet, and a new key could execute it twice.","code":"outcome_unknown","retryable":true}
  {"type":"/.well-known/idempotency#outcome_unknown","title":"The outcome of the request is not known","status":409,"detail":"Find out whether the operation took effect before you repeat it with a new key; whether it was executed is not known.","code":"outcome_unknown","retryable":false}
  Retry-After: 30
  {"type":"/.well-known/idempotency#outcome_unknown","title":"The outcome of the request is not known","status":502,"detail":"Send the same request with the same key again later; whether this one was executed is not known yet, and a new key could execute it twice.","code":"outcome_unknown","retryable":true}
  {"type":"/.well-known/idempotency#outcome_unknown","title":"The outcome of the request is not known","status":502,"detail":"Find out whether the operation took effect before you repeat it with a new key; whether it was executed is not known.","code":"outcome_unknown","retryable":false}
  Retry-After: 30
  {"type":"/.well-known/idempotency#outcome_unknown","title":"The outcome of the request is not known","status":504,"detail":"Send the same request with the same key again later; whether this one was executed is not known yet, and a new key could execute it twice.","code":"outcome_unknown","retryable":true}
  {"type":"/.well-known/idempotency#outcome_unknown","title":"The outcome of the request is not known","status":504,"detail":"Find out whether the operation took effect before you repeat it with a new key; whether it was executed is not known.","code":"outcome_unknown","retryable":false}
  {"type":"/.well-known/idempotency#response_not_kept","title":"The request was completed and its response was not kept","status":409,"detail":"Do not repeat the operation, which was completed; look its result up, since its response was not kept.","code":"response_not_kept","retryable":false,"original_status":201,"location":"/v1/orders/1"}
  {"type":"/.well-known/idempotency#response_not_kept","title":"The request was completed and its response was not kept","status":409,"detail":"Do not repeat the operation, which was completed; look its result up, since its response was not kept.","code":"response_not_kept","retryable":false,"original_status":200}
  {"type":"/.well-known/idempotency#upstream_unreachable","title":"The backend was not reached","status":502,"detail":"Send the item again with the same key; the backend refused the batch it was in for now.","code":"upstream_unreachable","retryable":true}
  {"type":"/.well-known/idempotency#response_not_kept","title":"The request was completed and its response was not kept","status":409,"detail":"Do not repeat the operation, which was completed; send this item alone with the same key for its result, since the results of the batch are too large together.","code":"response_not_kept","retryable":false,"original_status":201}
  {"type":"/.well-known/idempotency#key_expired","title":"The idempotency key has expired","status":409,"detail":"Look the operation's result up, and use a new key only for a new operation; this key's response is no longer kept.","code":"key_expired","retryable":false}
  {"type":"/.well-known/idempotency#request_too_large","title":"The request body is too large","status":413,"detail":"Send a body of at most 1048576 bytes; this delivery was not executed.","code":"request_too_large","retryable":false}
  {"type":"/.well-known/idempotency#request_timeout","title":"The request took too long","status":408,"detail":"Send the request again with the same key; it did not arrive in time and this delivery was not executed.","code":"request_timeout","retryable":true}
  {"type":"/.well-known/idempotency#header_too_large","title":"The request's header fields are too large","status":431,"detail":"Send fewer or shorter header fields; this delivery was not executed.","code":"header_too_large","retryable":false}
  {"type":"/.well-known/idempotency#not_implemented","title":"The request asks for what is not supported here","status":501,"detail":"Send the request without Upgrade, CONNECT, or a transfer coding besides chunked.","code":"not_implemented","retryable":false}
  {"type":"/.well-known/idempotency#not_implemented","title":"The request asks for what is not supported here","status":501,"detail":"Call gRPC methods on a route with idempotency: off; recorded outcomes are for plain HTTP.","code":"not_implemented","retryable":false}
  {"type":"/.well-known/idempotency#no_route","title":"No route leads to a backend","status":404,"detail":"Use a host and a path for which a route is configured.","code":"no_route","retryable":false}
  Retry-After: 2
  {"type":"/.well-known/idempotency#store_unavailable","title":"The record store is not available","status":503,"detail":"Send the same request with the same key again later; this delivery was not executed because it could not be recorded.","code":"store_unavailable","retryable":true}
  Retry-After: 30
  {"type":"/.well-known/idempotency#store_unreadable","title":"The record of this idempotency key cannot be read","status":503,"detail":"Send the same request with the same key again later; a record of it exists and cannot be read here.","code":"store_unreadable","retryable":true}
  {"type":"/.well-known/idempotency#upstream_unreachable","title":"The backend was not reached","status":502,"detail":"Send the same request with the same key again; the backend was not reached and this delivery was not executed.","code":"upstream_unreachable","retryable":true}
  Retry-After: 1
  {"type":"/.well-known/idempotency#overloaded","title":"Too much is in progress","status":503,"detail":"Send the same request with the same key again later; too much is in progress and this delivery was not executed.","code":"overloaded","retryable":true}
  Retry-After: 1
  {"type":"/.well-known/idempotency#overloaded","title":"Too much is in progress","status":503,"detail":"Send the same request with the same key again on a new connection; this server is shutting down and did not execute this delivery.","code":"overloaded","retryable":true}
  Retry-After: 1
  {"type":"/.well-known/idempotency#quota_exceeded","title":"The caller sends too much","status":429,"detail":"Send the same request with the same key again once others have ended; you have too many in progress, and this delivery was not executed.","code":"quota_exceeded","retryable":true}
  Retry-After: 3
  {"type":"/.well-known/idempotency#quota_exceeded","title":"The caller sends too much","status":429,"detail":"Send the same request with the same key again later; you use new keys too fast, and this delivery was not executed.","code":"quota_exceeded","retryable":true}
  WWW-Authenticate: Bearer
  {"type":"/.well-known/idempotency#caller_unknown","title":"The caller is not known","status":401,"detail":"Say who you are by a token with the claim sub, which this request lacks; this resource keeps every caller's keys apart.","code":"caller_unknown","retryable":false}
  WWW-Authenticate: Bearer error="invalid_token"
  {"type":"/.well-known/idempotency#caller_unknown","title":"The caller is not known","status":401,"detail":"Send one Authorization field; this request has several.","code":"caller_unknown","retryable":false}
  WWW-Authenticate: Bearer
  {"type":"/.well-known/idempotency#caller_unknown","title":"The caller is not known","status":401,"detail":"Send a bearer token in the Authorization field; this one has another scheme.","code":"caller_unknown","retryable":false}
  WWW-Authenticate: Bearer error="invalid_token"
  {"type":"/.well-known/idempotency#caller_unknown","title":"The caller is not known","status":401,"detail":"Send a signed JSON Web Token in its compact form; this token cannot be read.","code":"caller_unknown","retryable":false}
  WWW-Authenticate: Bearer error="invalid_token"
  {"type":"/.well-known/idempotency#caller_unknown","title":"The caller is not known","status":401,"detail":"Send a token that is signed with a key and an algorithm that are accepted here.","code":"caller_unknown","retryable":false}
  WWW-Authenticate: Bearer error="invalid_token"
  {"type":"/.well-known/idempotency#caller_unknown","title":"The caller is not known","status":401,"detail":"Get a new token and send the request again with the same key; this token has expired.","code":"caller_unknown","retryable":false}
  WWW-Authenticate: Bearer error="invalid_token"
  {"type":"/.well-known/idempotency#caller_unknown","title":"The caller is not known","status":401,"detail":"Send the request again with the same key once the token is valid; its time has not come.","code":"caller_unknown","retryable":false}
  WWW-Authenticate: Bearer error="invalid_token"
  {"type":"/.well-known/idempotency#caller_unknown","title":"The caller is not known","status":401,"detail":"Send a token of the issuer and for the audience that are accepted here.","code":"caller_unknown","retryable":false}
  Retry-After: 5
  WWW-Authenticate: Bearer
  {"type":"/.well-known/idempotency#caller_unknown","title":"The caller is not known","status":401,"detail":"Send the request again later with the same key; the keys that verify tokens are not available, and this delivery was not executed.","code":"caller_unknown","retryable":true}

  """#
