/// The scripts of an owner.
///
/// In a record's text, the token is in bytes 3 to 34, and byte 36 is the first letter of its state: (i)n_flight,
/// (u)nknown, (r)eleased, (c)ompleted, (f)orgotten. The token of a forgotten record belongs to no owner, or to the
/// owner that deleted its own record over a fence. The owner whose record was forgotten is in the fingerprint's place.
///
/// Their first argument is the beginning of the owner's record, `1 OWNER `, which takes less than to build it. An owner
/// writes the flags and the time to live of its claim, including the fence.
extension RedisScript {
  /// The arguments: 1 the beginning, 2 `ATTEMPT FIRST`,
  /// 3 `LEASE UNKNOWN REMEMBER FLAGS FINGERPRINT RECIPE [@ATTRIBUTION]`, 4 time to live.
  static let renewSource = """
    local own = not r or string.find(r, ARGV[1], 1, true) == 1
    if own then
      local state = r and string.byte(r, 36) or 105
      if state == 105 then
        redis.call('SET', KEYS[1], ARGV[1] .. 'in_flight ' .. ARGV[2] .. ' ' .. now .. ' ' .. ARGV[3],
          'PX', ARGV[4])
      end
      if not r then return {now, 'created'} end
      if state ~= 102 then
        if state ~= 105 then
          \(rewriteLife)
        end
        return now
      end
    end
    """

  /// The arguments: 1 the beginning, 2 the attempt, 3 `RETENTION 0 REMEMBER FLAGS FINGERPRINT RECIPE [@ATTRIBUTION]
  /// STATUS` and the location or the response, 4 time to live, 5 when the record was first seen, 6 what `checkResponse`
  /// takes.
  static let completeSource = """
    local r = redis.call('GET', KEYS[1])
    local own = not r or string.find(r, ARGV[1], 1, true) == 1
    if own then
      local state = r and string.byte(r, 36) or 105
      if state == 99 then
        \(rewriteLife)
        return {now, 'again'}
      end
      if state == 105 or state == 117 then
        \(checkResponse(argument: 6))
        redis.call('SET', KEYS[1], ARGV[1] .. 'completed ' .. ARGV[2] .. ' ' .. math.max(now - ARGV[5], 0)
          .. ' ' .. t[1] .. string.sub('00000' .. t[2], -6, -4) .. ' ' .. ARGV[3], 'PX', ARGV[4])
        redis.pcall('PUBLISH', KEYS[1], '')
        return r and now or {now, 'created'}
      end
    end
    """

  /// The arguments: 1 the beginning, 2 `remembered`, `uncounted` or `deleted`.
  ///
  /// The remaining record keeps Redis' values: an owner whose claim's reply was lost does not know them.
  static let releaseSource = """
    if not r then return now end
    if string.find(r, ARGV[1], 1, true) == 1 then
      local state = string.byte(r, 36)
      if state == 114 or state == 102 then return now end
      if state == 105 or state == 117 then
        local first, unknown, remember, flags, print =
          string.match(r, '^1 %x+ [%a_]+ (%d+ %d+) %d+ %d+ (%d+) (%d+) (%S+) (.+)$')
        local fence = (string.match(flags, 'f(%d+)') or 0) - now
        if ARGV[2] == 'deleted' and fence > 0 then
          redis.call('SET', KEYS[1], ARGV[1] .. 'forgotten ' .. first .. ' ' .. now .. ' ' .. fence
            .. ' 0 0 - - -', 'PX', fence)
        elseif ARGV[2] == 'deleted' then
          redis.call('DEL', KEYS[1])
        else
          flags = string.gsub(flags, '[-o]', '')
          if ARGV[2] == 'uncounted' then
            local uncounted = (string.match(flags, 'n(%d+)') or 0) + 1
            flags = 'n' .. uncounted .. string.gsub(flags, 'n%d+', '')
          end
          redis.call('SET', KEYS[1], ARGV[1] .. 'released ' .. first .. ' ' .. now .. ' 0 ' .. unknown
            .. ' ' .. remember .. ' ' .. (flags == '' and '-' or flags) .. ' ' .. print,
            'PX', math.max(1, tonumber(remember), fence))
        end
        redis.pcall('PUBLISH', KEYS[1], '')
        return now
      end
    end
    """

  /// The arguments: 1 the beginning, 2 `ATTEMPT FIRST`, 3 `0 UNKNOWN REMEMBER FLAGS FINGERPRINT RECIPE [@ATTRIBUTION]`,
  /// 4 time to live from the loss on.
  static let markUnknownSource = """
    local own = not r or string.find(r, ARGV[1], 1, true) == 1
    if own then
      local state = r and string.byte(r, 36) or 105
      if state == 117 or state == 99 then return now end
      if state == 105 then
        local loss, fence = now, 0
        if r then
          local since, span, flags = string.match(r, '^1 %x+ in_flight %d+ %d+ (%d+) (%d+) %d+ %d+ (%S+)')
          loss = math.min(now, since + span)
          fence = (string.match(flags, 'f(%d+)') or 0) - now
        end
        redis.call('SET', KEYS[1], ARGV[1] .. 'unknown ' .. ARGV[2] .. ' ' .. loss .. ' ' .. ARGV[3],
          'PX', math.max(1, ARGV[4] - (now - loss), fence))
        redis.pcall('PUBLISH', KEYS[1], '')
        return now
      end
    end
    """
}
