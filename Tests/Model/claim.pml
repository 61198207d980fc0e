/* The claim protocol for one key: what its deliveries, the store and time may do to one another.
 *
 * Here stands what Sources/Idempotency (RecordRules, SendPermit, ClaimLifecycle, RecordRun), its scripts in Sources/Store/Redis
 * and Sources/Proxy (OwnedRecord, OwnedRun, RequestRunner) do, less what does not matter to safety: payloads,
 * retention, caches. A delivery's owner token is its number. A command that was sent is run by the store at once, later
 * or never, in any order with others, and its reply may be lost: that is a network, a frozen Redis and a repeated
 * command in one. A delivery may stand still at every step (a frozen process), or die there. Time is counted in ticks,
 * alike by the store and by the owners, but that the owners' clocks may miss one tick in a lease: that is what the
 * permit's margin is for.
 *
 * The model leaves out what Semel cannot prevent: a freeze between the permit's check and the first byte, a store that
 * forgets, an operator who is wrong.
 *
 * -D RETRY: on_unknown is `retry`, else `hold`. -D FORGET: an operator forgets the record once, at any moment, and what
 * is completed after that may end before the owner from before it does. What was forgotten may then run again; but no
 * owner from before may make its record anew. The fence is modelled without an end, since its span outlasts every
 * owner. It knows the owner whose record it took the place of, until another one claims: to that owner a late copy of
 * its claim grants nothing. By the time of another owner such copies are over, since each has a deadline. Then no
 * operator resolves, and one delivery's claim alone is copied, which keeps the search short.
 *
 * -D FAILOVER: Redis loses its newest writes once, under `store.replicas`. From one moment on the replica gets nothing
 * more, and at a later one it takes over. The record is always the replica's. In between, commands run in vain, and of
 * their replies only those come that count without a replica (ReplicaProof.isNeeded). The replica's clock may be so far
 * ahead that the lease has lapsed and the time for a late response is over; a clock that is behind only prolongs both.
 * So does a clock that is set back: both then count from the first look at the record (RedisScript.takeBack).
 * A release in vain leaves the record in flight, and nobody's (RedisScript.awaitsReplicas). At the new server claims
 * wait for a grace (RedisPipeline+Alarm), in which owners that may yet send renew their leases (OwnedRecord.renewNow).
 *
 * The model ends the grace when all these have renewed, or may not send any more. Semel ends it after a fixed time.
 * What makes up for that with `retry`: for a lease no record is taken over (RedisAlarm.mayTakeOver), whose owner may
 * not have renewed there in time. So the protocol holds with NO_GRACE as well. A process that has not met the server of
 * before has neither: with a clock that is ahead, two owners may then send, which NO_GRACE and NO_ERA find together.
 *
 * To keep this search short, no operator resolves, claims are neither copied nor repeated after a refusal, an owner
 * renews only before it sends, and the owners' clocks miss no tick. The searches without FAILOVER have all of these.
 *
 * Each of the other macros plants a bug, which the search must find: NO_OWNER_CHECK, LEASE_AS_TTL, RELEASE_ON_ERROR,
 * NO_DEADLINE, SEND_STALE, NO_MARGIN, EARLY_RELEASE, EARLY_LEAVE, LATE_DELETE; with FORGET: NO_FENCE,
 * FENCE_DELETED, FENCE_ENDS, FENCE_BLIND (it knows no owner); with FAILOVER: NO_WAIT (a grant counts without the
 * replica); with FAILOVER and RETRY: NO_GRACE (claims do not wait for the owners) with NO_ERA (records are taken over
 * at once), UNPROVEN_READ (a client gets an outcome that the replica lacks).
 */

#ifndef N
#define N 2        /* Deliveries. */
#endif
#define LEASE 2    /* Ticks. */
#define DEADLINE 1 /* The maximum wait for a claim. */
#ifdef NO_MARGIN
#define PERMIT LEASE
#else
#define PERMIT (LEASE - 1)
#endif
#ifdef RETRY
#define SETTLE 1
#else
#define SETTLE 0   /* Nobody takes a record over. */
#endif
#if defined(FAILOVER)
#define COPIES 1   /* Of a claim under way at once. */
#elif defined(FORGET)
#define COPIES (me == 1 -> 2 : 1)
#else
#define COPIES 2
#endif

mtype = { absent, in_flight, unknown, released, completed };
mtype = { none, granted, unproven, late, held, ended, renewed, done, lost };

/* The record, as the store has it. A lease of 0 has lapsed. */
mtype state = absent;
byte owner, attempt, lease, settle, outcome;
bit isFresh;       /* It has met mere rejections so far. */
bit isFenced;      /* Absent, it is the fence of a forgotten record; else it carries that. */
#ifdef FORGET
byte fencedOwner;  /* Whose record was forgotten, until another one claims. */
#else
#define fencedOwner 0
#endif
#ifdef FENCE_BLIND
#define isFencedOff(i) false
#else
#define isFencedOff(i) (fencedOwner == i)
#endif

/* Of each delivery: its commands under way, the last reply, its clocks, and what it knows. */
typedef Delivery {
  byte claims, renewals, marks, completions, releases;
  mtype reply = none;
  byte deadline;   /* Until the claim is given up, by the store's clock. */
  byte permit;     /* Until the grant is stale, by the owner's own. */
  byte asked;      /* The permit once the renewal under way is acknowledged. */
  byte number;     /* The attempt that was granted. */
  bit deletes;     /* Its releases delete the record. */
  bit isRepeated;  /* Its claim was sent a second time. */
  bit isOver;      /* The store has confirmed that it gave the record back. */
  bit isFirst;     /* The record that it was granted had met mere rejections. */
  bit isUnderWay;  /* The backend may yet run its request. */
  bit isForgotten; /* An operator has forgotten its record. */
#ifdef FAILOVER
  bit isStale;     /* It might have sent at the promotion, and its lease was not renewed since. */
#endif
}
Delivery d[N + 1];

#ifdef FAILOVER
bit isCutOff;      /* The replica gets nothing more. The record is what it has. */
bit hasPromoted;
bit isGrace;       /* New claims wait. */
bit hasLost;       /* A release of the record's owner did not reach the replica. */
#if defined(RETRY) && !defined(NO_ERA)
#define HAS_ERA
byte era;          /* Ticks for which no record is taken over. */
#define mayTakeOver (settle == 0 && era == 0)
#else
#define mayTakeOver (settle == 0)
#endif
#else
#define mayTakeOver (settle == 0)
#define isCutOff false
#define hasPromoted false
#define isGrace false
#define hasLost false
#endif

/* A lease that has lapsed by the promoted clock does no harm before another claim may be granted. Without a grace it is
 * no finding either: the record's next owner is. */
#ifdef NO_GRACE
#define mayLapse hasPromoted
#else
#define mayLapse isGrace
#endif

/* The actual events. */
byte begun;        /* Deliveries that have come. */
byte ran;          /* The delivery whose request had, or may have had, an effect. */
byte lastAttempt;  /* The greatest attempt number that the backend was shown. */
byte told;         /* The outcome that a client was given. */
byte missed;       /* Ticks until the owners' clocks may miss another. */

#define isOwn(i) (owner == i)
#ifdef NO_OWNER_CHECK
#define mayEnd(i) true
#else
#define mayEnd(i) isOwn(i)
#endif
#define underWay (d[1].isUnderWay + d[N].isUnderWay + d[(N + 1) / 2].isUnderWay)
#define isHeld (state == in_flight || state == unknown)
#define tell(word) if :: d[i].reply = word :: skip fi /* Or the reply is lost. */
#define countDown(counter) counter = (counter > 0 -> counter - 1 : 0)

inline put(newState) {
  /* Completed is final: an acknowledged outcome stays. */
  assert(state != completed);
  state = newState
}

/* A forgotten record stays forgotten. */
#define makeAnew noGhost; assert(!d[i].isForgotten)
#define isLost (state == absent && !isFenced)

/* Nobody is left to give it back: no ghost may get the record, nor make it anew. */
#define noGhost assert(!d[i].isOver)

inline grant(next) {
  noGhost;
#ifdef FORGET
  assert(fencedOwner != i);
  if :: fencedOwner != 0 -> d[fencedOwner].claims = 0 :: else fi;
  fencedOwner = 0;
#endif
  isFresh = (state == absent -> 1 : (state == in_flight && isOwn(i) -> isFresh : 0));
  put(in_flight);
  d[i].isForgotten = 0;
  owner = i;
  attempt = next;
  lease = LEASE;
  settle = 0;
  if
  :: d[i].reply = granted; d[i].number = attempt; d[i].isFirst = isFresh
#ifdef FAILOVER
  :: d[i].reply = unproven; d[i].isFirst = isFresh
#endif
  :: skip
  fi
}

inline runClaim() {
  d[i].claims--;
  if
#ifndef NO_DEADLINE
  :: d[i].deadline == 0 -> tell(late)
  :: d[i].deadline > 0 ->
#else
  :: true ->
#endif
    if
    :: state == absent && isFencedOff(i) -> tell(late)
    :: state == absent && !isFencedOff(i) -> grant(attempt + 1)
    :: state == in_flight && isOwn(i) -> grant(attempt)
    :: state == released && isOwn(i) -> tell(late)
    :: state == released && !isOwn(i) -> grant(attempt + 1)
    :: state == completed -> tell(ended)
    :: state == in_flight && lease > 0 && !isOwn(i) -> tell(held)
    :: state == unknown || state == in_flight && lease == 0 && !isOwn(i) ->
#ifdef RETRY
      if :: mayTakeOver -> grant(attempt + 1) :: else -> tell(held) fi
#else
      tell(held)
#endif
    fi
  fi
}

#ifdef FAILOVER
#define refresh d[i].isStale = 0
#else
#define refresh skip
#endif

inline runRenewal() {
  d[i].renewals--;
  if
  :: isLost -> makeAnew; put(in_flight); owner = i; attempt = d[i].number; lease = LEASE; refresh; tell(renewed)
  :: state == in_flight && isOwn(i) -> lease = LEASE; settle = 0; refresh; tell(renewed)
  :: else
  fi
}

inline runMark() {
  d[i].marks--;
  if
  :: isLost -> makeAnew; put(unknown); owner = i; attempt = d[i].number; settle = SETTLE
  :: state == in_flight && isOwn(i) -> put(unknown); settle = (lease > 0 -> SETTLE : settle); lease = 0
  :: else
  fi
}

inline runCompletion() {
  d[i].completions--;
  if
  :: isLost -> assert(!d[i].isForgotten); put(completed); owner = i; attempt = d[i].number; outcome = i; tell(done)
  :: state == completed && isOwn(i) -> tell(done)
#ifdef NO_OWNER_CHECK
  :: state == completed && !isOwn(i) -> put(completed)
#endif
  :: isHeld && mayEnd(i) -> put(completed); outcome = i; lease = 0; settle = 0; tell(done)
  :: else -> tell(lost)
  fi
}

inline runRelease() {
  d[i].releases--;
  if
  :: state == absent || state == released && isOwn(i) -> tell(done)
  :: isHeld && mayEnd(i) && !d[i].deletes -> put(released); isFresh = 0; lease = 0; settle = 0; tell(done)
  :: isHeld && mayEnd(i) && d[i].deletes ->
#ifdef FENCE_DELETED
    isFenced = 0;
#endif
    put(absent); owner = 0; lease = 0; settle = 0; isFresh = 0;
    if :: isFenced :: else -> attempt = 0; lastAttempt = 0 fi;
    tell(done)
  :: else -> tell(lost)
  fi
}

inline tick() {
  if
  :: state == in_flight && lease == 1 ->
    lease = 0;
#ifdef LEASE_AS_TTL
    state = absent; owner = 0; attempt = 0
#else
    settle = SETTLE
#endif
  :: else -> countDown(lease); countDown(settle)
  fi;
#ifdef HAS_ERA
  countDown(era);
#endif
  i = 1;
  do :: i <= N -> countDown(d[i].deadline); i++ :: else -> break od;
  if
#ifndef FAILOVER
  :: missed == 0 -> missed = LEASE
#endif
  :: true ->
    countDown(missed);
    i = 1;
    do :: i <= N -> countDown(d[i].permit); countDown(d[i].asked); i++ :: else -> break od
  fi
}

#ifdef FAILOVER
/* The server of before runs a command that the replica does not get. What it has by now is not known, so that any reply
 * comes that may count. One that means the same to the delivery as no reply or as another one is left out. A grant is
 * given back (RedisStore.giveBack). */
inline runInVain() {
  if
  :: d[i].claims > 0 ->
    d[i].claims--;
    if
    :: d[i].reply = unproven; d[i].isFirst = 0
    :: state == absent || isFresh -> d[i].reply = unproven; d[i].isFirst = 1
    :: d[i].reply = held
    :: state == completed -> d[i].reply = ended
#ifdef NO_WAIT
    :: state == absent -> d[i].reply = granted; d[i].number = attempt + 1; d[i].isFirst = 1
#endif
    :: skip
    fi
  :: d[i].renewals > 0 -> d[i].renewals--
  :: d[i].marks > 0 -> d[i].marks--
  :: d[i].completions > 0 ->
    d[i].completions--;
#ifdef UNPROVEN_READ
    if
    :: isHeld && isOwn(i) -> assert(told == 0 || told == i); told = i
    :: else
    fi;
#endif
    tell(lost)
  :: d[i].releases > 0 -> d[i].releases--; hasLost = hasLost || isOwn(i); tell(done)
  fi
}
#endif

#define isBusy(k) (isGrace -> 0 : d[k].claims) + d[k].renewals + d[k].marks + d[k].completions + d[k].releases > 0

inline runAny() {
  if
#ifdef FAILOVER
  :: !hasPromoted -> isCutOff = 1; runInVain()
#endif
  :: !isCutOff && !isGrace && d[i].claims > 0 -> runClaim()
  :: !isCutOff && d[i].renewals > 0 -> runRenewal()
  :: !isCutOff && d[i].marks > 0 -> runMark()
  :: !isCutOff && d[i].completions > 0 -> runCompletion()
  :: !isCutOff && d[i].releases > 0 -> runRelease()
  fi
}

/* The record goes, with all that its outcome was: what begins now may run it anew. */
inline remove() {
  state = absent; owner = 0; lease = 0; settle = 0; outcome = 0; isFresh = 0;
  ran = 0; told = 0;
  i = 1;
  do
  :: i <= begun -> d[i].isUnderWay = 0; d[i].isForgotten = 1; i++
  :: else -> break
  od
}

#ifdef FAILOVER
#define mightSend(k) (d[k].number > 0 && d[k].permit > 0 || d[k].reply == renewed && d[k].asked > 0)

/* Commands under way to the server of before are run by no other one. Whoever may yet send has to renew. */
inline promote() {
  isCutOff = 0; hasPromoted = 1;
#ifdef HAS_ERA
  era = LEASE;
#endif
  if :: true :: lease = 0; settle = 0 fi;
  i = 1;
  do
  :: i <= N ->
    d[i].claims = 0; d[i].renewals = 0; d[i].marks = 0; d[i].completions = 0; d[i].releases = 0;
    d[i].isStale = (mightSend(i) -> 1 : 0);
    i++
  :: else -> break
  od;
#ifndef NO_GRACE
  isGrace = 1
#endif
}
#define isReached(k) (!d[k].isStale || !mightSend(k))
#endif

/* The store runs any command that is under way, time goes on, and an operator resolves what is unknown, once, and
 * tells the truth; the new token is nobody's. */
proctype World() {
  byte i;
#ifdef FORGET
  bit hasForgotten, hasEnded;
#elif !defined(FAILOVER)
  bit isResolved;
#endif
end:
  do
  :: atomic { isBusy(1) -> i = 1; runAny(); i = 0 }
  :: atomic { isBusy(2) -> i = 2; runAny(); i = 0 }
#if N > 2
  :: atomic { isBusy(3) -> i = 3; runAny(); i = 0 }
#endif
  :: atomic { tick(); i = 0 }
#ifdef FORGET
  :: atomic {
      !hasForgotten && state != absent -> hasForgotten = 1;
      fencedOwner = owner;
#ifndef NO_FENCE
      isFenced = 1;
#endif
      remove(); i = 0
    }
  :: atomic {
      hasForgotten && !hasEnded && state == completed -> hasEnded = 1;
#ifdef FENCE_ENDS
      isFenced = 0;
#endif
      remove(); i = 0
    }
#elif defined(FAILOVER)
  :: atomic { !hasPromoted -> promote(); i = 0 }
  :: atomic {
      isGrace && isReached(1) && isReached(N) && isReached((N + 1) / 2) -> isGrace = 0;
      i = 1;
      do :: i <= N -> d[i].isStale = 0; i++ :: else -> break od;
      i = 0
    }
#else
  :: atomic {
      !isResolved && (ran != 0 || underWay == 0) && (state == unknown || state == in_flight && lease == 0) ->
      isResolved = 1;
      owner = 0;
      settle = 0;
      if
      :: ran == 0 && underWay == 0 -> put(released); isFresh = 0
      :: ran != 0 -> put(completed); outcome = ran
      fi
    }
#endif
  od
}

/* A copy of a renewal would make a deleted record anew. */
#ifdef LATE_DELETE
#define mayDelete true
#else
#define mayDelete !hasRenewed
#endif

#define hears(word) d[me].reply == word
#define again(command) d[me].command == 0 -> d[me].reply = none; d[me].command = 1

inline tellClient(what) {
  /* All responses with an outcome agree. A forgotten outcome reaches only deliveries from before that. */
  if
  :: d[me].isForgotten
  :: else -> assert(told == 0 || told == what); told = what
  fi
}

/* Whoever hears that another has the record does not look whether a copy of its own claim may get it next. */
#ifdef EARLY_LEAVE
#define MAY_LEAVE true
#else
#define MAY_LEAVE false
#endif

/* The backend has run it; and it cannot any more. */
inline execute() {
  if
  :: d[me].isUnderWay -> d[me].isUnderWay = 0; ran = me
  :: else /* Of what was forgotten nothing counts. */
  fi
}
#define stop d[me].isUnderWay = 0

proctype Deliver(byte me) {
  bit hasRenewed;

  atomic {
    begun == me - 1 -> begun = me;
    d[me].claims = 1; d[me].deadline = DEADLINE; d[me].permit = PERMIT
  };

claiming:
  if
  :: atomic { hears(granted) -> goto owning }
#ifdef FAILOVER
  :: atomic { hears(unproven) -> d[me].deletes = d[me].isFirst; d[me].isFirst = 0; goto givingBack }
#endif
  :: atomic { hears(ended) -> tellClient(outcome); goto finished }
  :: atomic { hears(held) && (!d[me].isRepeated || MAY_LEAVE) -> d[me].isOver = 1; goto finished }
#ifndef FAILOVER
  /* Another copy may get it yet: the store is asked again, once it is too late for that one. */
  :: atomic {
      hears(held) && d[me].isRepeated && d[me].deadline == 0 ->
      d[me].reply = none; d[me].isRepeated = 0;
      d[me].claims = 1; d[me].deadline = DEADLINE; d[me].permit = PERMIT;
      goto claiming
    }
#endif
  /* The reply is lost: the same again while there is time, then the claim is given back. */
  :: atomic {
      d[me].deadline > 0 && d[me].claims < COPIES ->
      d[me].reply = none; d[me].number = 0; d[me].claims++;
      d[me].permit = PERMIT; d[me].isRepeated = 1;
      goto claiming
    }
  :: atomic { d[me].deadline == 0 -> goto givingBack }
  :: goto finished                     /* It dies. */
  fi;

owning:
  if
  :: atomic {
#ifndef SEND_STALE
      d[me].permit > 0 ->
#else
      true ->
#endif
      if
      :: d[me].isForgotten /* Whoever forgets what is in flight lets it run twice. */
      :: else ->
        /* At the moment of the sending nobody else's claim is live, and the attempts grow. */
        assert(isOwn(me) && state == in_flight && (lease > 0 || mayLapse));
        assert(d[me].number > lastAttempt);
        lastAttempt = d[me].number;
#ifndef RETRY
        assert(ran == 0);
#endif
        d[me].isUnderWay = 1
      fi;
      d[me].reply = none; d[me].permit = 0; d[me].asked = 0;
      goto sent
    }
  :: atomic { d[me].permit == 0 -> goto givingBack }
  :: goto givingBack                   /* The backend cannot be reached. */
  :: atomic { again(renewals); d[me].asked = PERMIT; hasRenewed = 1; goto owning }
  :: atomic {
      hears(renewed) ->
      d[me].reply = none;
      d[me].permit = (d[me].asked > d[me].permit -> d[me].asked : d[me].permit);
      goto owning
    }
  :: goto finished                     /* It dies. */
  fi;

sent:
  if
#ifndef FAILOVER
  :: atomic { again(renewals); hasRenewed = 1; goto sent }
#endif
  :: atomic { true -> execute(); goto responded }
  :: atomic { true -> execute(); goto unanswered }
  :: atomic { stop; goto unanswered }                  /* Cut before the backend has read it. */
  :: atomic { true -> execute(); goto finished }                   /* It dies. */
  :: atomic { stop; goto givingBack }                  /* An outcome of the class `retry`. */
  :: atomic {                                          /* 401, 403 or 429. */
      d[me].isFirst && mayDelete -> d[me].deletes = 1; stop; goto givingBack
    }
  fi;

unanswered:
#ifdef RELEASE_ON_ERROR
  goto givingBack;
#endif
  d[me].marks = 1;
  if
  :: atomic { ran == me || d[me].isForgotten -> goto responded } /* Late. */
#ifdef LATE_DELETE
  :: atomic { ran == 0 && d[me].isFirst -> d[me].deletes = 1; goto givingBack }
#endif
  :: atomic { ran == 0 || d[me].isForgotten -> goto givingBack } /* Late, and of the class `retry`. */
  :: goto finished
  fi;

responded:
  if
  :: atomic { again(completions); goto responded }
  :: atomic { hears(done) -> tellClient(me) }
  :: atomic { hears(lost) -> if :: state == completed -> tellClient(outcome) :: else fi }
#ifndef RETRY
  :: atomic { true -> tellClient(me) } /* The store is silent: told now, stored when it is back. */
#endif
  :: goto finished                     /* It dies. */
  fi;
  goto finished;

givingBack:
  atomic { d[me].permit = 0; d[me].asked = 0 };
#ifndef EARLY_RELEASE
  /* Another copy of the claim may be under way: not before it is too late for that one. */
  !d[me].isRepeated || d[me].deadline == 0;
#endif
  do
  :: atomic { again(releases) }
  :: atomic {
      hears(done) || hears(lost) ->
      d[me].isOver = 1;
      assert(!(state == in_flight && isOwn(me)) || hasLost);
      break
    }
  :: break                             /* It dies. */
  od;

finished:
  atomic {
    d[me].reply = none; d[me].permit = 0; d[me].asked = 0; d[me].isRepeated = 0; d[me].isFirst = 0; hasRenewed = 0
  }
}

init {
  byte i;
  atomic {
    run World();
    i = 1;
    do :: i <= N -> run Deliver(i); i++ :: else -> break od
  }
}
