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

  /// No arguments. The reply has a word of its own, by which the record is parsed with its attribution.
  static let findSource = """
    if r and string.find(r, '^1 %x+ [%a_]+ %d+ %d+ %d+ %d+ %d+ %d+ %S+ ') then
      \(takeBack)
      return {now, 'view', r}
    end
    """

  /// The arguments: 1 a new token, 2 the fence, 3 the channel of invalidations, 4 the ID, 5 deadline, 6 the time
  /// by the store's clock at which the call began; the deadline if this is the first copy.
  ///
  /// A record that this version cannot read, also one that is no text, is replaced by the fence alone.
  ///
  /// The reply has the end of the key of the record's response, which Semel then deletes. The fence keeps it in the
  /// recipe's place, for the script repeated with the same token. After its deadline it forgets nothing, nor does it
  /// forget a record that began behind a fence of an earlier copy. A record that was forgotten before gets the longer
  /// fence, and the reply `again`, which counts once replicas have that fence.
  ///
  /// In the fingerprint's place the fence keeps the token of the record's owner, to which no late copy of its claim
  /// grants the record again.
  static let forgetSource = """
    if now >= tonumber(ARGV[5]) then return {now, 'late'} end
    local r = redis.pcall('GET', KEYS[1])
    if not r then return {now, 'none'} end
    local owner, state, attempt, since, span, flags = string.match(type(r) == 'string' and r or '',
      '^1 (%x+) ([%a_]+) (%d+) %d+ (%d+) (%d+) %d+ %d+ (%S+)')
    local fence = tonumber(ARGV[2])
    if attempt and #attempt > \(RedisRecord.maxAttemptDigits) then attempt = 0 end
    local fenced = state == 'forgotten'
    local last = fenced and string.match(r, '(%x+) %S+$') or owner or '-'
    local place = not flags and 'r' or string.find(flags, 'k', 1, true) and 'r'
      or string.find(flags, 'b', 1, true) and 'r:' .. owner or '-'
    if fenced then
      if owner == ARGV[1] then
        \(rewriteLife)
        return {now, 'erased', string.match(r, '%S+$')}
      end
      fence = math.max(fence, since + span - now)
    elseif flags then
      local before = tonumber(string.match(flags, 'f(%d+)') or 0)
      if before >= ARGV[6] + fence and before < ARGV[5] + fence then
        \(rewriteLife)
        return {now, 'erased', '-'}
      end
      fence = math.max(fence, before - now)
    end
    if fence > 0 then
      redis.call('SET', KEYS[1], '1 ' .. ARGV[1] .. ' forgotten ' .. (attempt or 0) .. ' ' .. now .. ' ' .. now
        .. ' ' .. fence .. ' 0 0 - ' .. last .. ' ' .. place, 'PX', fence)
    else
      redis.call('DEL', KEYS[1])
    end
    redis.pcall('PUBLISH', KEYS[1], '')
    redis.pcall('PUBLISH', ARGV[3], ARGV[4])
    if fenced then return {now, 'again'} end
    return {now, 'erased', place}
    """

  /// The arguments: 1 a new token, 2 the new state, 3 span, 4 remember, 5 ` STATUS` and the location or the response,
  /// 6 the flags of the outcome or empty, 7 the channel of invalidations, 8 the ID, 9 `amend` or empty, 10 deadline,
  /// 11 the attempt that the decision is about, or empty for the last one, 12 what `checkResponse` takes.
  ///
  /// After its deadline the script changes nothing. The first half of an operator's token identifies it as one
  /// (`OwnerToken.ofOperator`). The reply has the end of the key of an amended record's response, which Semel deletes.
  static let resolveSource = """
    local owner, state, attempt, first, since, span, unknown, remember, flags, print, recipe = string.match(r or '',
      '^1 (%x+) ([%a_]+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+) (%S+) (%S+)')
    if state and owner == ARGV[1] then
      \(rewriteLife)
      return now
    end
    if now >= tonumber(ARGV[10]) then return {now, 'late'} end
    if state then
      local age = now - since - span
      local open = (state == 'unknown' or state == 'in_flight' and age >= 0) and age < tonumber(unknown)
      local ended = state == 'completed' and age < 0 or state == 'released' and age < tonumber(remember)
      local amends = ARGV[9] == 'amend' and string.sub(owner, 1, 16) == string.sub(ARGV[1], 1, 16)
      if (open or ended and amends) and (ARGV[11] == '' or ARGV[11] == attempt) then
        \(checkResponse(argument: 12))
        local place = string.find(flags, 'k', 1, true) and 'r' or string.find(flags, 'b', 1, true) and 'r:' .. owner
        flags = string.gsub(flags, '[-okebx]', '') .. ARGV[6]
        local live = tonumber(remember)
        if ARGV[2] == 'completed' then
          remember = ARGV[4]
          live = math.max(tonumber(remember), tonumber(ARGV[3]))
        elseif state == 'completed' then
          remember = math.max(tonumber(remember), tonumber(span))
          live = remember
        end
        live = math.max(live, (string.match(flags, 'f(%d+)') or 0) - now)
        if state == 'completed' and #first < 13 then first = since - first end
        if ARGV[2] == 'completed' then first = math.max(now - first, 0) end
        local origin = string.match(r, '^1 %x+ [%a_]+ %d+ %d+ %d+ %d+ %d+ %d+ %S+ %S+ %S+( @%S+)') or ''
        redis.call('SET', KEYS[1], '1 ' .. ARGV[1] .. ' ' .. ARGV[2] .. ' ' .. attempt .. ' ' .. first .. ' ' .. now
          .. ' ' .. ARGV[3] .. ' ' .. unknown .. ' ' .. remember .. ' ' .. (flags == '' and '-' or flags) .. ' '
          .. print .. ' ' .. recipe .. origin .. ARGV[5], 'PX', math.max(1, live))
        redis.pcall('PUBLISH', KEYS[1], '')
        redis.pcall('PUBLISH', ARGV[7], ARGV[8])
        return place and {now, 'erased', place} or now
      end
      \(takeBack)
    end
    """

  /// No arguments. Returns the time if it has written, which it does to a completed record.
  static let touchSource = """
    if r and string.byte(r, 36) == 99 then
      \(rewriteLife)
      if left > 0 then return now end
    end
    return {now, 'none'}
    """

  /// The arguments: 1 the cursor of Redis' own walk over its keys, 2 a pattern that the keys of records match, 3 the
  /// number of keys of a step, 4 the number of bytes of a key before the ID. The key is any that the server has: what
  /// stands before it refuses a script without one.
  ///
  /// The reply has the next cursor and, for each record that is open or cannot be read, its ID and text, which is empty
  /// if only the response cannot be read. A user of Redis that may not read responses gets none of these.
  static let listSource = """
    local step = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3])
    local found = {now, 'walked', step[1]}
    for _, key in ipairs(step[2]) do
      local r = redis.pcall('GET', key)
      local text = type(r) == 'string' and r or ''
      local owner, state, since, span, flags =
        string.match(text, '^1 (%x+) ([%a_]+) %d+ %d+ (%d+) (%d+) %d+ %d+ (%S+) ')
      local listed = r and state ~= 'completed' and state ~= 'released' and state ~= 'forgotten'
      local place = state == 'completed' and now < since + span and string.match(flags, '[keb]')
      if place then
        local head, length, from
        if place == 'e' then
          local before = '^1 %x+ completed %d+ %d+ %d+ %d+ %d+ %d+ %S+ %S+ %S+ '
          from = string.match(text, before .. '@%S+ %d+ ()') or string.match(text, before .. '%d+ ()') or #text + 1
          head, length = string.sub(text, from, from + 10), #text - from + 1
        else
          from = key .. (place == 'k' and ':r' or ':r:' .. owner)
          head, length = redis.pcall('GETRANGE', from, 0, 10), redis.pcall('STRLEN', from)
        end
        if type(head) ~= 'string' then
          listed = string.find(head.err, 'WRONGTYPE', 1, true)
        elseif head ~= '' or place == 'e' then
          local version, _, fields, trailers = 0
          if #head == 11 then version, _, fields, trailers = struct.unpack('>BHI4I4', head) end
          listed = version ~= 1 and version ~= 2 or type(length) == 'number' and 11 + fields + trailers > length
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

  /// The arguments: 1 to 4 as for `list`, 5 the digests of keys with a space around each, 6 the digest of a caller, 7 a
  /// route; an empty one of these stands for any.
  ///
  /// The reply has the next cursor, and the IDs of the records whose attribution has all of these. The ID of a record
  /// that this server refuses to read follows a `?` (`RedisList.refusedMark`): another node of the cluster may serve
  /// it.
  static let searchSource = """
    local step = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3])
    local found = {now, 'hits', step[1]}
    for _, name in ipairs(step[2]) do
      local r = redis.pcall('GET', name)
      if type(r) == 'table' and not string.find(r.err, 'WRONGTYPE', 1, true) then
        found[#found + 1] = '?' .. string.sub(name, ARGV[4] + 1, -2)
      end
      local route, key, caller = string.match(type(r) == 'string' and r or '',
        '^1 %x+ [%a_]+ %d+ %d+ %d+ %d+ %d+ %d+ %S+ %S+ %S+ @([^%s,]*),([^%s,]*),([^%s,]*)')
      if route and (ARGV[5] == '' or string.find(ARGV[5], ' ' .. key .. ' ', 1, true))
        and (ARGV[6] == '' or ARGV[6] == caller) and (ARGV[7] == '' or ARGV[7] == route) then
        found[#found + 1] = string.sub(name, ARGV[4] + 1, -2)
      end
    end
    return found
    """
}
