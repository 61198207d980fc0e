"""Planted faults of the scripts that keep records in Redis, and of the times for which Redis keeps them."""

REDIS_SCRIPT_CLAIM = "Store/Redis/Scripts/RedisScript+Claim.swift"
REDIS_SCRIPT_OWNER = "Store/Redis/Scripts/RedisScript+Owner.swift"
REDIS_STORE = "Store/Redis/RedisStore.swift"
REDIS_SCRIPT_OPERATOR = "Store/Redis/Scripts/RedisScript+Operator.swift"
REDIS_COMMAND_WRITER_RECORD = "Store/Redis/Protocol/RedisCommandWriter+Record.swift"

MUTANTS = {
    "Redis grants a live lease": [
        (
            REDIS_SCRIPT_CLAIM,
            "if now < since + span or age >=",
            'if \\(PLANTED ? "" : "now < since + span or") age >=',
        ),
        (
            REDIS_SCRIPT_CLAIM,
            "local age = math.max(now - since - span, 0)",
            'local age = \\(PLANTED ? "now - since" : "math.max(now - since - span, 0)")',
        ),
    ],
    "Redis grants late copies": [
        (
            REDIS_SCRIPT_CLAIM,
            "if now >= tonumber(ARGV[2]) then",
            'if \\(PLANTED ? "false" : "now >= tonumber(ARGV[2])") then',
        ),
    ],
    "a record names a response that is not there": [
        (
            REDIS_SCRIPT_OWNER,
            "      if state == 105 or state == 117 then\n        \\(checkResponse(argument: 6))",
            "      if state == 105 or state == 117 then\n        \\(PLANTED ? \"\" : checkResponse(argument: 6))",
        ),
    ],
    "Redis releases for anybody": [
        (
            REDIS_SCRIPT_OWNER,
            "if string.find(r, ARGV[1], 1, true) == 1 then\n      local state",
            'if \\(PLANTED ? "true" : "string.find(r, ARGV[1], 1, true) == 1") then\n      local state',
        ),
    ],
    # Claims.
    "Redis compares no payload": [
        (REDIS_SCRIPT_CLAIM, "      if print ~= ARGV[4] then\n", '      if \\(PLANTED ? "false" : "print ~= ARGV[4]") then\n'),
    ],
    "Redis replays to any payload": [
        (
            REDIS_SCRIPT_CLAIM,
            "if print == ARGV[4] and #flags < 4 then",
            'if \\(PLANTED ? "print" : "print == ARGV[4]") and #flags < 4 then',
        ),
    ],
    # After a reload a payload counts as changed that is not.
    "Redis takes another recipe for another payload": [
        (
            REDIS_SCRIPT_CLAIM,
            "if string.match(print, recipe) == string.match(ARGV[4], recipe) then",
            'if \\(PLANTED ? "true" : "string.match(print, recipe) == string.match(ARGV[4], recipe)") then',
        ),
    ],
    "Redis takes over what is held": [
        (REDIS_SCRIPT_CLAIM, "or settle < 0 or", 'or \\(PLANTED ? "" : "settle < 0 or")'),
    ],
    "Redis does not wait for settle": [
        (REDIS_SCRIPT_CLAIM, " age < settle then", ' \\(PLANTED ? "settle < 0" : "age < settle") then'),
    ],
    "attempts stand still in Redis": [
        (
            REDIS_SCRIPT_CLAIM,
            "\\(Claim.attemptsPerGeneration))) + 1\n",
            "\\(Claim.attemptsPerGeneration))) + \\(PLANTED ? 0 : 1)\n",
        ),
    ],
    "attempts begin anew behind a fence in Redis": [
        (
            REDIS_SCRIPT_CLAIM,
            "attempt, first, flags = following, now,",
            'attempt, first, flags = \\(PLANTED ? "ARGV[7]" : "following"), now,',
        ),
    ],
    # A rejection then deletes what the lost attempt may have left.
    "a claim behind a loss has met rejections alone": [
        (REDIS_SCRIPT_CLAIM, "attempt, flags = following, 'u'", "attempt, flags = following, '\\(PLANTED ? \"ou\" : \"u\")'"),
    ],
    # The backend's refusal of a duplicate then counts as its outcome.
    "Redis forgets that an outcome was lost": [
        (REDIS_SCRIPT_CLAIM, '? "ou" : "u")\'', '? "ou" : PLANTED ? "" : "u")\''),
    ],
    "a claim drops its fence in Redis": [
        (
            REDIS_SCRIPT_CLAIM,
            "local fenced = fence > now and 'f' .. fence or ''",
            "local fenced = \\(PLANTED ? \"''\" : \"fence > now and 'f' .. fence or ''\")",
        ),
    ],
    # Owners.
    "Redis renews for anybody": [
        (
            REDIS_SCRIPT_OWNER,
            '  static let renewSource = """\n    local own = not r or string.find(r, ARGV[1], 1, true) == 1\n',
            '  static let renewSource = """\n    local own = not r or \\(PLANTED ? "true" : "string.find(r, ARGV[1], 1, true) == 1")\n',
        ),
    ],
    "Redis completes for anybody": [
        (
            REDIS_SCRIPT_OWNER,
            "    local r = redis.call('GET', KEYS[1])\n    local own = not r or string.find(r, ARGV[1], 1, true) == 1\n",
            "    local r = redis.call('GET', KEYS[1])\n"
            '    local own = not r or \\(PLANTED ? "true" : "string.find(r, ARGV[1], 1, true) == 1")\n',
        ),
    ],
    "Redis marks for anybody": [
        (
            REDIS_SCRIPT_OWNER,
            '  static let markUnknownSource = """\n    local own = not r or string.find(r, ARGV[1], 1, true) == 1\n',
            '  static let markUnknownSource = """\n    local own = not r or \\(PLANTED ? "true" : "string.find(r, ARGV[1], 1, true) == 1")\n',
        ),
    ],
    # Its `settle` is over before it has begun.
    "Redis dates a loss too early": [
        (REDIS_SCRIPT_OWNER, "loss = math.min(now, since + span)\n", "loss = math.min(now, since + span) - \\(PLANTED ? 600 : 0)\n"),
    ],
    "Redis deletes what is released": [
        (REDIS_SCRIPT_OWNER, "        elseif ARGV[2] == 'deleted' then\n", "        elseif \\(PLANTED ? \"true\" : \"ARGV[2] == 'deleted'\") then\n"),
    ],
    "Redis deletes a fence with its record": [
        (
            REDIS_SCRIPT_OWNER,
            "if ARGV[2] == 'deleted' and fence > 0 then",
            "if \\(PLANTED ? \"false\" : \"ARGV[2] == 'deleted' and fence > 0\") then",
        ),
    ],
    "a release drops its fence in Redis": [
        (
            REDIS_SCRIPT_OWNER,
            "          if ARGV[2] == 'uncounted' then\n",
            "          \\(PLANTED ? \"flags = string.gsub(flags, 'f%d+', '')\" : \"\")\n          if ARGV[2] == 'uncounted' then\n",
        ),
    ],
    "a release in Redis has met rejections alone": [
        (
            REDIS_SCRIPT_OWNER,
            "flags = string.gsub(flags, '[-o]', '')",
            "flags = string.gsub(flags, '\\(PLANTED ? \"[-]\" : \"[-o]\")', '')",
        ),
    ],
    "an uncounted attempt counts in Redis": [
        (
            REDIS_SCRIPT_OWNER,
            "local uncounted = (string.match(flags, 'n(%d+)') or 0) + 1\n",
            "local uncounted = (string.match(flags, 'n(%d+)') or 0) + \\(PLANTED ? 0 : 1)\n",
        ),
    ],
    "no released attempt counts in Redis": [
        (REDIS_STORE, '    case .remembered: "remembered"\n', '    case .remembered: PLANTED ? "uncounted" : "remembered"\n'),
    ],
    # Operators.
    "Redis forgets without a fence": [
        (
            REDIS_SCRIPT_OPERATOR,
            "    if fence > 0 then\n      redis.call('SET', KEYS[1], '1 '",
            "    if fence > \\(PLANTED ? \"math.huge\" : \"0\") then\n      redis.call('SET', KEYS[1], '1 '",
        ),
    ],
    "Redis forgets nothing": [
        (
            REDIS_SCRIPT_OPERATOR,
            "    local fence = tonumber(ARGV[2])\n",
            "    \\(PLANTED ? \"do return {now, 'erased', '-'} end\" : \"\")\n    local fence = tonumber(ARGV[2])\n",
        ),
    ],
    # The request runs again, or stays unknown.
    "Redis resolves nothing": [
        (
            REDIS_SCRIPT_OPERATOR,
            "    if now >= tonumber(ARGV[10]) then return {now, 'late'} end\n",
            "    \\(PLANTED ? \"if state then return now end\" : \"\")\n    if now >= tonumber(ARGV[10]) then return {now, 'late'} end\n",
        ),
    ],
    "Redis amends outcomes": [
        (
            REDIS_SCRIPT_OPERATOR,
            "and string.sub(owner, 1, 16) == string.sub(ARGV[1], 1, 16)",
            "and \\(PLANTED ? \"true\" : \"string.sub(owner, 1, 16) == string.sub(ARGV[1], 1, 16)\")",
        ),
    ],
    "Redis replaces decisions": [
        (REDIS_SCRIPT_OPERATOR, "local amends = ARGV[9] == 'amend'", "local amends = \\(PLANTED ? \"true\" : \"ARGV[9] == 'amend'\")"),
    ],
    # What an owner writes, and for how long.
    "an owner's writes drop the fence": [
        (REDIS_COMMAND_WRITER_RECORD, "    if let fence = claim.fence {\n", "    if let fence = claim.fence, !PLANTED {\n"),
    ],
    # Redis forgets what it was to keep, and the request runs again.
    "a record ends with its lease": [
        (
            REDIS_COMMAND_WRITER_RECORD,
            "    timeToLive(request.lease, request.unknownRetention, request.remember)\n",
            "    if PLANTED {\n      timeToLive(request.lease)\n    } else {\n"
            "      timeToLive(request.lease, request.unknownRetention, request.remember)\n    }\n",
        ),
    ],
    "a renewed record ends with its lease": [
        (
            REDIS_STORE,
            "writer.timeToLive(claim.lease, claim.unknownRetention, claim.remember, over: claim.fence)",
            "writer.timeToLive(claim.lease, PLANTED ? 0 : claim.unknownRetention, PLANTED ? 0 : claim.remember, over: claim.fence)",
        ),
    ],
    "an unknown record is not kept": [
        (
            REDIS_STORE,
            "writer.timeToLive(claim.unknownRetention, claim.remember, over: claim.fence)",
            "writer.timeToLive(PLANTED ? 500 : claim.unknownRetention, PLANTED ? 0 : claim.remember, over: claim.fence)",
        ),
    ],
    "an outcome is not kept": [
        (
            REDIS_STORE,
            "writer.timeToLive(completion.lifetime, over: claim.fence)",
            "writer.timeToLive(PLANTED ? 500 : completion.lifetime, over: claim.fence)",
        ),
    ],
    "a released record is not kept": [
        (
            REDIS_SCRIPT_OWNER,
            "'PX', math.max(1, tonumber(remember), fence))",
            "'PX', math.max(1, tonumber(\\(PLANTED ? \"1\" : \"remember\")), fence))",
        ),
    ],
    "a response ends before its record": [
        (
            REDIS_COMMAND_WRITER_RECORD,
            "writer.timeToLive(retention, Self.readingTime)",
            "writer.timeToLive(PLANTED ? 500 : retention, PLANTED ? 0 : Self.readingTime)",
        ),
    ],
}
