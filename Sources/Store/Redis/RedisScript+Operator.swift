extension RedisScript {
  /// The arguments: 1 the fact's name, 2 the value that it must have (empty: none), 3 its new value (empty: no change).
  static let factSource = """
    local value = redis.call('HGET', KEYS[1], ARGV[1]) or ''
    if ARGV[3] ~= '' and value == ARGV[2] then
      redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
      value = ARGV[3]
    end
    return {now, 'fact', value}
    """

  /// No arguments. The common end returns the record.
  static let findSource = ""

  /// The arguments: 1 a new token, 2 the fence, 3 the channel of invalidations, 4 the ID, 5 deadline.
  ///
  /// Of a record that this version cannot read, only the fence is kept. This is the operator's way out, also if the key
  /// holds something other than a text.
  ///
  /// Repeated with the same token, the script returns the same result. After its deadline it forgets nothing, because
  /// it would forget a later record.
  static let forgetSource = """
    if now >= tonumber(ARGV[5]) then return {now, 'late'} end
    local r = redis.pcall('GET', KEYS[1])
    if not r then return {now, 'none'} end
    local owner, state, attempt, since, span, flags = string.match(type(r) == 'string' and r or '',
      '^1 (%x+) ([%a_]+) (%d+) %d+ (%d+) (%d+) %d+ %d+ (%S+)')
    local fence = tonumber(ARGV[2])
    local fenced = state == 'forgotten'
    if fenced then
      if owner == ARGV[1] then return now end
      fence = math.max(fence, since + span - now)
    elseif flags then
      fence = math.max(fence, (string.match(flags, 'f(%d+)') or 0) - now)
    end
    if fence > 0 then
      redis.call('SET', KEYS[1], '1 ' .. ARGV[1] .. ' forgotten ' .. (attempt or 0) .. ' ' .. now .. ' ' .. now
        .. ' ' .. fence .. ' 0 0 - - -', 'PX', fence)
    else
      redis.call('DEL', KEYS[1])
    end
    redis.call('DEL', KEYS[2])
    redis.pcall('PUBLISH', KEYS[1], '')
    redis.pcall('PUBLISH', ARGV[3], ARGV[4])
    if fenced then return {now, 'none'} end
    return now
    """

  /// The arguments: 1 a new token, 2 the new state, 3 span, 4 remember, 5 ` STATUS LOCATION`, 6 `k` or empty, 7 the
  /// response, 8 the channel of invalidations, 9 the ID, 10 `amend` or empty, 11 deadline.
  ///
  /// After its deadline the script changes nothing, because it would end a later attempt's unknown outcome. The first half
  /// of an operator's token identifies it as one (`OwnerToken.ofOperator`).
  static let resolveSource = """
    local owner, state, attempt, first, since, span, unknown, remember, flags, print, recipe = string.match(r or '',
      '^1 (%x+) ([%a_]+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+) (%S+) (%S+)')
    if state and owner == ARGV[1] then return now end
    if now >= tonumber(ARGV[11]) then return {now, 'late'} end
    if state then
      local age = now - since - span
      local open = (state == 'unknown' or state == 'in_flight' and age >= 0) and age < tonumber(unknown)
      local ended = state == 'completed' and age < 0 or state == 'released' and age < tonumber(remember)
      if open or ended and ARGV[10] == 'amend' and string.sub(owner, 1, 16) == string.sub(ARGV[1], 1, 16) then
        flags = string.gsub(flags, '[-ok]', '') .. ARGV[6]
        local live = tonumber(remember)
        if ARGV[2] == 'completed' then
          remember = ARGV[4]
          live = math.max(tonumber(remember), tonumber(ARGV[3]))
        end
        live = math.max(live, (string.match(flags, 'f(%d+)') or 0) - now)
        if ARGV[7] ~= '' then
          redis.call('SET', KEYS[2], ARGV[7], 'PX', math.max(1, tonumber(ARGV[3])))
        elseif ended then
          redis.call('DEL', KEYS[2])
        end
        redis.call('SET', KEYS[1], '1 ' .. ARGV[1] .. ' ' .. ARGV[2] .. ' ' .. attempt .. ' ' .. first .. ' ' .. now
          .. ' ' .. ARGV[3] .. ' ' .. unknown .. ' ' .. remember .. ' ' .. (flags == '' and '-' or flags) .. ' '
          .. print .. ' ' .. recipe .. ARGV[5], 'PX', math.max(1, live))
        redis.pcall('PUBLISH', KEYS[1], '')
        redis.pcall('PUBLISH', ARGV[8], ARGV[9])
        return now
      end
    end
    """

  /// The arguments: 1 the cursor of Redis' own walk over its keys, 2 a pattern that the keys of records match, 3 the
  /// number of keys of a step, 4 the number of bytes of a key before the ID.
  ///
  /// A walk while other commands run visits each record that remains at least once. The reply contains the next cursor
  /// and, for each record that is open or cannot be read, its ID and text. If only the response of a record cannot be
  /// read (see `RedisResponse`), its text is empty. A user of Redis that may not read responses gets none of these.
  static let listSource = """
    local step = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3])
    local found = {now, 'walked', step[1]}
    for _, key in ipairs(step[2]) do
      local r = redis.pcall('GET', key)
      local text = type(r) == 'string' and r or ''
      local state, since, span, flags =
        string.match(text, '^1 %x+ ([%a_]+) %d+ %d+ (%d+) (%d+) %d+ %d+ (%S+) ')
      local listed = r and state ~= 'completed' and state ~= 'released' and state ~= 'forgotten'
      if state == 'completed' and string.find(flags, 'k', 1, true) and now < since + span then
        local head = redis.pcall('GETRANGE', key .. ':r', 0, 10)
        if type(head) ~= 'string' then
          listed = string.find(head.err, 'WRONGTYPE', 1, true)
        elseif head ~= '' then
          local version, _, fields, trailers = 0
          if #head == 11 then version, _, fields, trailers = struct.unpack('>BHI4I4', head) end
          local length = redis.pcall('STRLEN', key .. ':r')
          listed = version ~= 1 or type(length) == 'number' and 11 + fields + trailers > length
        end
        if listed then text = '' end
      end
      if listed then
        found[#found + 1] = string.sub(key, ARGV[4] + 1, -2)
        found[#found + 1] = text
      end
    end
    return found
    """
}
