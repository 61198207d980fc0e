/* Batches that share items: what their deliveries, the store and time may do to one another.
 *
 * Here stands what BatchLifecycle (Sources/Idempotency/Batch) and BatchRun (Sources/Proxy/Run) do. A delivery has
 * several items, each with a record of its own. It claims all that are open, one after the other in the order of the
 * records' ids and without waiting for a reply; it sends those that it was granted as one request, ends the record of
 * each, and only then waits for the items that others hold, to claim these again. A delivery of one item behaves like
 * a request whose record is the item's. Two batches have the same items, and a delivery of one stands beside them;
 * with -D RING three batches have two items each, so that each shares one with either of the others. A claim that the
 * store does not run makes a batch smaller: so the batches share all of their items, or some.
 *
 * The backend's response is split, so that each item is completed; or it is of the class `retry`, and each is
 * released; or it is lost or cannot be split, and each is unknown; or it comes late, once the items are unknown and
 * the client has its response. The ends are stored one by one, with all that others do in between.
 *
 * FAULTS faults may befall a run, each of which is one of these: a delivery dies; it stands still before it sends,
 * until the lease of an item has lapsed; the store does not run a claim; the reply to a granted claim is lost, and
 * the claim is given back some time later. Otherwise the lease of a delivery that lives does not lapse, and no
 * delivery gives up waiting: a time-out would hide a deadlock, which the search finds as an invalid end state. That
 * each delivery ends is shown by the absence of cycles, which a search for non-progress cycles proves, since no label
 * marks progress.
 *
 * The model leaves out what claim.pml has for one record: clocks, copies of commands, renewals, deleted records and
 * operators. It leaves out the matching of results with items, two items of one batch with the same key, and a store
 * that does not take the end of a run.
 *
 * -D RETRY: on_unknown is `retry`, else `hold`. -D ANY_ORDER: claims are taken in any order, which holds as well. A
 * delivery that holds claims waits for nobody, so the order of the ids is not what prevents deadlocks, nor is it
 * needed for safety. It is of use to batches with the same items that come at once: the one that is first at one item
 * tends to be first at the next, and gets all of them. Claimed in opposite orders, each would get a half, both would
 * be sent in parts, and both would wait.
 *
 * Each of the other macros plants a bug, which the search must find: WAIT_HOLDING (held items are waited for before
 * the owned ones are sent), SEND_HELD (they are sent), ONE_PERMIT (one lease of several is checked before the request
 * is sent), RESPOND_EARLY (the client has its response before the records have theirs), RELEASE_LOST (the items of a
 * lost response are released), LEAVE_GRANTED (claims that were not used are not given back).
 */

#define N 3        /* Deliveries. */
#ifdef RING        /* Each item is in two batches of two. */
#define K 3
#define FIRST 3
#define SECOND 6
#define THIRD 5
#define BATCHES_ARE_ALIKE false
#else              /* Two batches of all items, and a delivery of one. */
#define K 2
#define FIRST 3
#define SECOND 3
#define THIRD 2
#define BATCHES_ARE_ALIKE true
#endif
#define ALL ((1 << K) - 1)
#ifndef FAULTS
#define FAULTS 2
#endif

#define has(set, k) ((set >> k) & 1)
#define put(set, k) set = set | (1 << k)
#define take(set, k) set = set & (ALL - (1 << k))

mtype = { absent, in_flight, unknown, released, completed };

/* The records, as the store has them. */
typedef Record {
  mtype state = absent;
  byte owner;      /* Of a completed one, the delivery whose result it has. */
  bit isLive;      /* Its lease has not lapsed. */
  byte unused;     /* The delivery that gives back the claim, of which it has not heard. */
  /* The actual events. */
  bit mayHaveRun;  /* The backend may have run the item, or may run it yet. */
}
Record record[K];

byte faults = FAULTS;
bit begun;         /* The first batch has come. */
bit isDead[N + 1];

#define mayFail (faults > 0)
#define fault mayFail -> faults--
#define isOwn(k) (record[k].owner == me)
#define isHeld(k) (record[k].state == in_flight && record[k].isLive && !isOwn(k))
#define isFresh(k) (!has(owned, k) || isOwn(k) && record[k].state == in_flight && record[k].isLive)

/* Completed is final: what a client was given stays. */
inline become(k, newState) {
  assert(record[k].state != completed);
  record[k].state = newState;
  record[k].isLive = (record[k].state == in_flight -> 1 : 0)
}

inline grant(k) {
  become(k, in_flight);
  record[k].owner = me;
  record[k].unused = 0
}

/* Ends the record, unless it has another owner by now. */
inline release(k, who) {
  if
  :: record[k].owner == who && (record[k].state == in_flight || record[k].state == unknown) ->
    become(k, released);
    record[k].owner = 0
  :: else
  fi
}

/* The leases of the dead lapse, and unused claims are given back, at some time. */
proctype World() {
  byte k;
end:
  do
  :: atomic { record[0].state == in_flight && record[0].isLive && isDead[record[0].owner] -> record[0].isLive = 0 }
  :: atomic { record[1].state == in_flight && record[1].isLive && isDead[record[1].owner] -> record[1].isLive = 0 }
#if K > 2
  :: atomic { record[2].state == in_flight && record[2].isLive && isDead[record[2].owner] -> record[2].isLive = 0 }
#endif
  :: atomic {
      record[0].unused + record[1].unused + record[K - 1].unused > 0 ->
      if
      :: record[0].unused > 0 -> k = 0
      :: record[1].unused > 0 -> k = 1
      :: record[K - 1].unused > 0 -> k = K - 1
      fi;
      if
      :: isDead[record[k].unused]
      :: else -> release(k, record[k].unused)
      fi;
      record[k].unused = 0;
      k = 0
    }
  od
}

/* The next item to be claimed. */
inline pick() {
#ifdef ANY_ORDER
  if
  :: has(open, 0) -> k = 0
  :: has(open, 1) -> k = 1
  :: has(open, K - 1) -> k = K - 1
  fi
#else
  k = (has(open, 0) -> 0 : (has(open, 1) -> 1 : 2))
#endif
}

inline runClaim() {
  take(open, k);
  if
  :: record[k].state == absent || record[k].state == released ->
    if
    :: grant(k); put(owned, k)
    :: fault; grant(k); record[k].unused = me; put(refused, k)   /* The reply is lost. */
    fi
  :: record[k].state == completed -> put(replayed, k)
  :: isHeld(k) -> put(waiting, k)
  :: record[k].state == unknown || record[k].state == in_flight && !record[k].isLive ->
#ifdef RETRY
    if
    :: grant(k); put(owned, k)
    :: put(refused, k)                                           /* `settle` is not over. */
    fi
#else
    put(refused, k)
#endif
  :: fault; put(refused, k)                                      /* The store does not run it. */
  fi
}

/* The store has the end of an item's run, or another owner. */
inline complete() {
  take(owned, k);
  if
  :: isOwn(k) && (record[k].state == in_flight || record[k].state == unknown) ->
    become(k, completed);
    put(executed, k)
  :: record[k].state == completed -> put(replayed, k)
  :: record[k].state == in_flight && !isOwn(k) -> put(waiting, k)
  :: else -> put(refused, k)
  fi
}

inline markUnknown() {
  if
  :: isOwn(k) && record[k].state == in_flight -> become(k, unknown)
  :: else
  fi
}

/* Each client gets, for every item, what its record has. */
inline respond() {
  assert((executed | replayed | refused) == items);
  assert((executed & replayed) == 0 && (executed & refused) == 0 && (replayed & refused) == 0);
  k = 0;
  do
  :: k < K ->
    assert(!has(executed, k) || record[k].state == completed && isOwn(k));
    assert(!has(replayed, k) || record[k].state == completed);
    k++
  :: else -> break
  od;
  k = 0
}

/* All the claims, but for those of which it has not heard, were sent or given back. */
inline leave() {
  k = 0;
  do
  :: k < K ->
    assert(!isOwn(k) || record[k].state != in_flight || record[k].unused == me || has(sent, k));
    k++
  :: else -> break
  od;
  k = 0
}

#define isFreshAll (isFresh(0) && isFresh(1) && isFresh(K - 1))
#ifdef ONE_PERMIT
#define mayBeSent (has(owned, 0) -> isFresh(0) : (has(owned, 1) -> isFresh(1) : isFresh(K - 1)))
#else
#define mayBeSent isFreshAll
#endif

/* The items of the one request. */
#ifdef SEND_HELD
#define request (owned | waiting)
#else
#define request owned
#endif

inline send() {
  k = 0;
  do
  :: k < K ->
    if
    :: has(request, k) ->
      assert(isOwn(k) && record[k].state == in_flight && record[k].isLive);
#ifndef RETRY
      assert(!record[k].mayHaveRun);
#endif
      record[k].mayHaveRun = 1
    :: else
    fi;
    k++
  :: else -> break
  od;
  k = 0
}

#define firstOwned k = (has(owned, 0) -> 0 : (has(owned, 1) -> 1 : 2))
#define isOver(k) (has(waiting, k) && !isHeld(k))
#define die faults--; isDead[me] = 1; goto finished

proctype Deliver(byte me; byte items) {
  byte k, open, owned, waiting, executed, replayed, refused, sent, late;

  /* Of two that are alike the first comes first. */
  atomic { me != 2 || begun || !BATCHES_ARE_ALIKE -> open = items; begun = (me == 1 -> 1 : begun) };
claiming:
  do
  :: atomic { open != 0 -> pick(); runClaim(); k = 0 }
  :: atomic { open != 0 && mayFail -> die }
  :: open == 0 -> break
  od;

  if
#ifdef WAIT_HOLDING
  :: waiting != 0 -> goto held
#endif
  :: owned != 0 -> goto owning
  :: owned == 0 && waiting != 0 -> goto held
  :: owned == 0 && waiting == 0 -> goto ended
  fi;

owning:
  if
  :: atomic { mayBeSent -> send(); sent = owned; goto exchange }
  :: goto givingBack                   /* The backend is not reached, or there is no memory, or the permit is stale. */
  :: atomic {                          /* It stands still, until a lease has lapsed. */
      fault;
      if
      :: has(owned, 0) -> k = 0
      :: has(owned, 1) -> k = 1
      :: has(owned, K - 1) -> k = K - 1
      fi;
      record[k].isLive = (isOwn(k) -> 0 : record[k].isLive);
      k = 0;
      goto owning
    }
  :: atomic { mayFail -> die }
  fi;

exchange:
  if
  :: goto split
  :: atomic {
      do
      :: k < K -> if :: has(owned, k) && isOwn(k) -> record[k].mayHaveRun = 0 :: else fi; k++
      :: else -> break
      od;
      k = 0;
      goto givingBack
    }
  :: goto lost
  :: atomic { late = owned; goto lost }
  :: atomic { mayFail -> die }
  fi;

split:
#ifdef RESPOND_EARLY
  atomic { executed = executed | owned; respond() };
#endif
  do
  :: atomic { owned != 0 -> firstOwned; complete(); k = 0 }
  :: atomic { owned != 0 && mayFail -> die }
  :: owned == 0 -> goto next
  od;

/* Not sent, or of the class `retry`. */
givingBack:
  do
  :: atomic {
      owned != 0 -> firstOwned; take(owned, k);
      if
#ifdef LEAVE_GRANTED
      :: isOwn(k) && !has(sent, k) -> put(refused, k)
      :: isOwn(k) && has(sent, k) -> release(k, me); put(refused, k)
#else
      :: isOwn(k) -> release(k, me); put(refused, k)
#endif
      :: !isOwn(k) && record[k].state == completed -> put(replayed, k)
      :: !isOwn(k) && record[k].state == in_flight -> put(waiting, k)
      :: else -> put(refused, k)
      fi;
      k = 0
    }
  :: atomic { owned != 0 && mayFail -> die }
  :: owned == 0 -> goto next
  od;

lost:
  do
  :: atomic {
      owned != 0 -> firstOwned; take(owned, k); put(refused, k);
#ifdef RELEASE_LOST
      release(k, me);
#else
      markUnknown();
#endif
      k = 0
    }
  :: atomic { owned != 0 && mayFail -> die }
  :: owned == 0 -> break
  od;
  if
  :: late == 0 -> goto next
  :: late != 0 ->
    /* The client gets its response now, without waiting for what others hold. */
    atomic { refused = refused | waiting; waiting = 0; respond() };
    if
    :: goto finished                   /* Nothing comes. */
    :: atomic { owned = late; refused = refused & (ALL - late) }
    fi;
    do
    :: atomic { owned != 0 -> firstOwned; complete(); k = 0 }
    :: atomic { owned != 0 && mayFail -> die }
    :: owned == 0 -> goto finished
    od
  fi;

next:
  if
  :: waiting == 0 -> goto ended
  :: waiting != 0
  fi;

held:
  atomic {
    isOver(0) || isOver(1) || isOver(K - 1) ->
    open = waiting; waiting = 0;
    goto claiming
  };

ended:
  atomic { respond(); leave() };

finished:
  atomic { open = 0; owned = 0; waiting = 0; executed = 0; replayed = 0; refused = 0; sent = 0; late = 0 }
}

init {
  atomic { run World(); run Deliver(1, FIRST); run Deliver(2, SECOND); run Deliver(3, THIRD) }
}
