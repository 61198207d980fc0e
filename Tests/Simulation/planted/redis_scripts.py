"""Planted faults of the scripts that keep records in Redis, and of the times for which Redis keeps them."""

CLAIM = "Store/Redis/Scripts/RedisScript+Claim.swift"
OWNER = "Store/Redis/Scripts/RedisScript+Owner.swift"
OPERATOR = "Store/Redis/Scripts/RedisScript+Operator.swift"
WRITER = "Store/Redis/Protocol/RedisCommandWriter+Record.swift"
STORE = "Store/Redis/RedisStore.swift"

MUTANTS = {
    # Claims.
    "Redis compares no payload": [
        (CLAIM, "      if print ~= ARGV[4] then\n", '      if \\(PLANTED ? "false" : "print ~= ARGV[4]") then\n'),
    ],
    "Redis replays to any payload": [
        (
            CLAIM,
            "if print == ARGV[4] and #flags < 4 then",
            'if \\(PLANTED ? "print" : "print == ARGV[4]") and #flags < 4 then',
        ),
    ],
    # After a reload a payload counts as changed that is not.
    "Redis takes another recipe for another payload": [
        (
            CLAIM,
            "if string.match(print, recipe) == string.match(ARGV[4], recipe) then",
            'if \\(PLANTED ? "true" : "string.match(print, recipe) == string.match(ARGV[4], recipe)") then',
        ),
    ],
    "Redis takes over what is held": [
        (CLAIM, "or settle < 0 or", 'or \\(PLANTED ? "" : "settle < 0 or")'),
    ],
    "Redis does not wait for settle": [
        (CLAIM, " age < settle then", ' \\(PLANTED ? "settle < 0" : "age < settle") then'),
    ],
    "attempts stand still in Redis": [
        (
            CLAIM,
            "\\(Claim.attemptsPerGeneration))) + 1\n",
            "\\(Claim.attemptsPerGeneration))) + \\(PLANTED ? 0 : 1)\n",
        ),
    ],
    "attempts begin anew behind a fence in Redis": [
        (
            CLAIM,
            "attempt, first, flags = following, now,",
            'attempt, first, flags = \\(PLANTED ? "ARGV[7]" : "following"), now,',
        ),
    ],
    # A rejection then deletes what the lost attempt may have left.
    "a claim behind a loss has met rejections alone": [
        (CLAIM, "attempt, flags = following, 'u'", "attempt, flags = following, '\\(PLANTED ? \"ou\" : \"u\")'"),
    ],
    # The backend's refusal of a duplicate then counts as its outcome.
    "Redis forgets that an outcome was lost": [
        (CLAIM, '? "ou" : "u")\'', '? "ou" : PLANTED ? "" : "u")\''),
    ],
    "a claim drops its fence in Redis": [
        (
            CLAIM,
            "local fenced = fence > now and 'f' .. fence or ''",
            "local fenced = \\(PLANTED ? \"''\" : \"fence > now and 'f' .. fence or ''\")",
        ),
    ],
    # Owners.
    "Redis renews for anybody": [
        (
            OWNER,
            '  static let renewSource = """\n    local own = not r or string.find(r, ARGV[1], 1, true) == 1\n',
            '  static let renewSource = """\n    local own = not r or \\(PLANTED ? "true" : "string.find(r, ARGV[1], 1, true) == 1")\n',
        ),
    ],
    "Redis completes for anybody": [
        (
            OWNER,
            "    local r = redis.call('GET', KEYS[1])\n    local own = not r or string.find(r, ARGV[1], 1, true) == 1\n",
            "    local r = redis.call('GET', KEYS[1])\n"
            '    local own = not r or \\(PLANTED ? "true" : "string.find(r, ARGV[1], 1, true) == 1")\n',
        ),
    ],
    "Redis marks for anybody": [
        (
            OWNER,
            '  static let markUnknownSource = """\n    local own = not r or string.find(r, ARGV[1], 1, true) == 1\n',
            '  static let markUnknownSource = """\n    local own = not r or \\(PLANTED ? "true" : "string.find(r, ARGV[1], 1, true) == 1")\n',
        ),
    ],
    # Its `settle` is over before it has begun.
    "Redis dates a loss too early": [
        (OWNER, "loss = math.min(now, since + span)\n", "loss = math.min(now, since + span) - \\(PLANTED ? 600 : 0)\n"),
    ],
    "Redis deletes what is released": [
        (OWNER, "        elseif ARGV[2] == 'deleted' then\n", "        elseif \\(PLANTED ? \"true\" : \"ARGV[2] == 'deleted'\") then\n"),
    ],
    "Redis deletes a fence with its record": [
        (
            OWNER,
            "if ARGV[2] == 'deleted' and fence > 0 then",
            "if \\(PLANTED ? \"false\" : \"ARGV[2] == 'deleted' and fence > 0\") then",
        ),
    ],
    "a release drops its fence in Redis": [
        (
            OWNER,
            "          if ARGV[2] == 'uncounted' then\n",
            "          \\(PLANTED ? \"flags = string.gsub(flags, 'f%d+', '')\" : \"\")\n          if ARGV[2] == 'uncounted' then\n",
        ),
    ],
    "a release in Redis has met rejections alone": [
        (
            OWNER,
            "flags = string.gsub(flags, '[-o]', '')",
            "flags = string.gsub(flags, '\\(PLANTED ? \"[-]\" : \"[-o]\")', '')",
        ),
    ],
    "an uncounted attempt counts in Redis": [
        (
            OWNER,
            "local uncounted = (string.match(flags, 'n(%d+)') or 0) + 1\n",
            "local uncounted = (string.match(flags, 'n(%d+)') or 0) + \\(PLANTED ? 0 : 1)\n",
        ),
    ],
    "no released attempt counts in Redis": [
        (STORE, '    case .remembered: "remembered"\n', '    case .remembered: PLANTED ? "uncounted" : "remembered"\n'),
    ],
    # Operators.
    "Redis forgets without a fence": [
        (
            OPERATOR,
            "    if fence > 0 then\n      redis.call('SET', KEYS[1], '1 '",
            "    if fence > \\(PLANTED ? \"math.huge\" : \"0\") then\n      redis.call('SET', KEYS[1], '1 '",
        ),
    ],
    "Redis forgets nothing": [
        (
            OPERATOR,
            "    local fence = tonumber(ARGV[2])\n",
            "    \\(PLANTED ? \"do return {now, 'erased', '-'} end\" : \"\")\n    local fence = tonumber(ARGV[2])\n",
        ),
    ],
    # The request runs again, or stays unknown.
    "Redis resolves nothing": [
        (
            OPERATOR,
            "    if now >= tonumber(ARGV[10]) then return {now, 'late'} end\n",
            "    \\(PLANTED ? \"if state then return now end\" : \"\")\n    if now >= tonumber(ARGV[10]) then return {now, 'late'} end\n",
        ),
    ],
    "Redis amends outcomes": [
        (
            OPERATOR,
            "and string.sub(owner, 1, 16) == string.sub(ARGV[1], 1, 16)",
            "and \\(PLANTED ? \"true\" : \"string.sub(owner, 1, 16) == string.sub(ARGV[1], 1, 16)\")",
        ),
    ],
    "Redis replaces decisions": [
        (OPERATOR, "local amends = ARGV[9] == 'amend'", "local amends = \\(PLANTED ? \"true\" : \"ARGV[9] == 'amend'\")"),
    ],
    # What an owner writes, and for how long.
    "an owner's writes drop the fence": [
        (WRITER, "    if let fence = claim.fence {\n", "    if let fence = claim.fence, !PLANTED {\n"),
    ],
    # Redis forgets what it was to keep, and the request runs again.
    "a record ends with its lease": [
        (
            WRITER,
            "    timeToLive(request.lease, request.unknownRetention, request.remember)\n",
            "    if PLANTED {\n      timeToLive(request.lease)\n    } else {\n"
            "      timeToLive(request.lease, request.unknownRetention, request.remember)\n    }\n",
        ),
    ],
    "a renewed record ends with its lease": [
        (
            STORE,
            "writer.timeToLive(claim.lease, claim.unknownRetention, claim.remember, over: claim.fence)",
            "writer.timeToLive(claim.lease, PLANTED ? 0 : claim.unknownRetention, PLANTED ? 0 : claim.remember, over: claim.fence)",
        ),
    ],
    "an unknown record is not kept": [
        (
            STORE,
            "writer.timeToLive(claim.unknownRetention, claim.remember, over: claim.fence)",
            "writer.timeToLive(PLANTED ? 500 : claim.unknownRetention, PLANTED ? 0 : claim.remember, over: claim.fence)",
        ),
    ],
    "an outcome is not kept": [
        (
            STORE,
            "writer.timeToLive(completion.lifetime, over: claim.fence)",
            "writer.timeToLive(PLANTED ? 500 : completion.lifetime, over: claim.fence)",
        ),
    ],
    "a released record is not kept": [
        (
            OWNER,
            "'PX', math.max(1, tonumber(remember), fence))",
            "'PX', math.max(1, tonumber(\\(PLANTED ? \"1\" : \"remember\")), fence))",
        ),
    ],
    "a response ends before its record": [
        (
            WRITER,
            "writer.timeToLive(retention, Self.readingTime)",
            "writer.timeToLive(PLANTED ? 500 : retention, PLANTED ? 0 : Self.readingTime)",
        ),
    ],
}
