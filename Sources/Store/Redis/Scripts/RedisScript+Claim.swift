import Idempotency

extension RedisScript {
  /// The arguments: 1 owner, 2 deadline, 3 `LEASE UNKNOWN REMEMBER`, 4 `FINGERPRINT RECIPE`, 5 time to live, 6 settle
  /// or -1, 7 the attempt number of a new record's first owner (`RedisEpoch`), 8 ` @ATTRIBUTION` or empty.
  ///
  /// This is `runClaim` in Tests/Model/claim.pml. After its deadline it claims nothing. Nor does it grant a record to
  /// an owner that has released it, or whose record was forgotten: that command is an older copy of a repeated one.
  ///
  /// Redis' time as text, and the short way to a completed record without a fence, save a tenth of the instructions.
  /// The short way does not check the record's beginning: Semel refuses a text that it cannot read.
  ///
  /// A next owner's attempt number is that of `RecordRules.following`. A forgotten record that nobody could read has
  /// the attempt 0, whose remainder must be -1, as by `fmod` and not by `%`.
  ///
  /// Each owner hands on the fence. A record that ends before its fence is then equivalent to the fence alone.
  static let claimSource = """
    if now >= tonumber(ARGV[2]) then return {now, 'late'} end
    local r = redis.call('GET', KEYS[1])
    if not r then
      local text = t[1] .. string.sub('00000' .. t[2], -6, -4)
      r = '1 ' .. ARGV[1] .. ' in_flight ' .. ARGV[7] .. ' ' .. text .. ' ' .. text .. ' ' .. ARGV[3] .. ' o '
        .. ARGV[4] .. ARGV[8]
      redis.call('SET', KEYS[1], r, 'PX', ARGV[5])
      if ARGV[7] == '1' then return now end
      return {now, 'granted', r}
    end
    if string.byte(r, 36) == 99 then
      local flags, print = string.match(r, '^completed %d+ %d+ %d+ %d+ %d+ %d+ (%S+) (%S+ %S+)', 36)
      if print == ARGV[4] and #flags < 4 then return {now, 'standing', r} end
    end
    local owner, state, attempt, first, since, span, unknown, remember, flags, print = string.match(r,
      '^1 (%x+) ([%a_]+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+) (%S+ %S+)')
    if not owner or #attempt > \(RedisRecord.maxAttemptDigits) then return {now, 'unreadable', r} end
    local fence, live = 0, ARGV[5]
    if state == 'forgotten' then
      fence = since + span
    elseif #flags > 3 then
      fence = tonumber(string.match(flags, 'f(%d+)') or 0)
      local ends = since + span + unknown + remember
      if state == 'completed' then
        ends = since + math.max(span, remember)
      elseif state == 'released' then
        ends = since + remember
      end
      if fence > 0 and now >= ends then state = 'forgotten' end
    end
    local fenced = fence > now and 'f' .. fence or ''
    if fence > now then live = math.max(live, fence - now) end
    local following = math.max(attempt,
      ARGV[7] + math.fmod(attempt - 1, \(Claim.attemptsPerGeneration))) + 1
    if state == 'forgotten' then
      if owner == ARGV[1] or string.find(print, ARGV[1], 1, true) == 1 then return {now, 'late'} end
      attempt, first, flags = following, now, 'o' .. fenced
    elseif not (state == 'in_flight' and owner == ARGV[1]) then
      if print ~= ARGV[4] then
        -- A pattern with one beginning: any other takes a time that grows with the square of a damaged word.
        local recipe = '^%S+ (%S+)$'
        if string.match(print, recipe) == string.match(ARGV[4], recipe) then return {now, 'mismatch'} end
        return {now, 'recipe', r}
      end
      if state == 'released' then
        if owner == ARGV[1] then return {now, 'late'} end
        attempt = following
      elseif state == 'completed' then
        return {now, 'standing', r}
      elseif state == 'in_flight' or state == 'unknown' then
        if tonumber(since) > now then
          \(takeBack)
          return {now, 'standing', r}
        end
        local age = math.max(now - since - span, 0)
        local settle = tonumber(ARGV[6])
        if now < since + span or age >= tonumber(unknown) or settle < 0 or age < settle then
          return {now, 'standing', r}
        end
        attempt, flags = following, 'u' .. (string.match(flags, 'n%d+') or '') .. fenced
      else
        return {now, 'unreadable', r}
      end
    end
    r = '1 ' .. ARGV[1] .. ' in_flight ' .. attempt .. ' ' .. first .. ' ' .. now .. ' ' .. ARGV[3] .. ' '
      .. flags .. ' ' .. ARGV[4] .. ARGV[8]
    redis.call('SET', KEYS[1], r, 'PX', live)
    return {now, 'granted', r}
    """
}
