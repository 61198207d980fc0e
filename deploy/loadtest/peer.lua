-- A common substitute for Semel: an idempotency key in Redis, before a backend, in nginx with Lua. For
-- comparison only. It has no owner, no lease of its own, no fingerprint and no caller: what it costs is what the least
-- of it costs.
local redis_port = tonumber(ngx.var.redis_port)

local function read(socket)
  local line, failure = socket:receive("*l")
  if not line then return nil, failure end
  local kind, rest = line:sub(1, 1), line:sub(2)
  if kind == "$" then
    local length = tonumber(rest)
    if length < 0 then return false end
    local text = socket:receive(length)
    socket:receive(2)
    return text
  end
  if kind == "-" then return nil, rest end
  return rest
end

local function command(socket, ...)
  local words = {...}
  local parts = {"*" .. #words .. "\r\n"}
  for _, word in ipairs(words) do parts[#parts + 1] = "$" .. #word .. "\r\n" .. word .. "\r\n" end
  socket:send(table.concat(parts))
  return read(socket)
end

local key = ngx.req.get_headers()["Idempotency-Key"]
if not key then return ngx.exit(400) end
ngx.req.read_body()
local socket = ngx.socket.tcp()
if not socket:connect("127.0.0.1", redis_port, {pool_size = 256}) then return ngx.exit(503) end
key = "peer:" .. key
local before, failure = command(socket, "SET", key, "running", "NX", "GET", "PX", "30000")
if failure then return ngx.exit(503) end
if before == "running" then
  socket:setkeepalive(60000, 256)
  return ngx.exit(409)
end
if not before then
  local response = ngx.location.capture("/backend" .. ngx.var.request_uri, {method = ngx.HTTP_POST, always_forward_body = true})
  command(socket, "SET", key, response.status .. response.body, "PX", "86400000")
  before = response.status .. response.body
end
socket:setkeepalive(60000, 256)
ngx.status = tonumber(before:sub(1, 3))
ngx.header["Content-Type"] = "application/json"
ngx.print(before:sub(4))
