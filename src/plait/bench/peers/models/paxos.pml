/* Single-message Paxos in Promela, in the usual style: a process per role instance, arrays of message slots.
 *
 * Proposer p owns ballot and value p + 1. Each possible message (kind, sender, receiver, ballot) has one slot. Consuming
 * the message empties the slot. So delivery is unordered and lossless, and a message that its guard rejects stays pending.
 * Each process has one loop, and every step is one d_step in it. So control states and counters add no states.
 *
 * plait.bench.peers.spin puts macros in front: P proposers, A acceptors, L learners, MAJORITY of the acceptors, and
 * EACH_PROPOSER(step), EACH_ACCEPTOR(step), EACH_VOTE(step): one option of a do loop per sender.
 */

mtype = { IDLE, READING, DONE };

bool read[P * A];         /* READ from proposer p to acceptor a, at p * A + a */
bool reply[P * A];        /* READ_REPL from a to p, with a's accepted ballot and value */
byte reply_ballot[P * A];
byte reply_value[P * A];
byte write[P * A];        /* WRITE from p to a: the value, 0 is no message */
byte accepted[L * P * A]; /* ACCEPT from a to learner n, of ballot p + 1, at (n * P + p) * A + a: the value */
byte learned[L * P];      /* the value that learner n learned in ballot p + 1, at n * P + p */

hidden byte i;            /* a loop counter, not part of the state */

#define ME _pid
#define BALLOT (ME + 1)

inline receive_reply(a) {
  d_step {
    reply[ME * A + a] && phase == READING ->
    count++;
    if
    :: reply_ballot[ME * A + a] > best_ballot ->
       best_ballot = reply_ballot[ME * A + a];
       best_value = reply_value[ME * A + a]
    :: else
    fi;
    reply[ME * A + a] = false;
    reply_ballot[ME * A + a] = 0;
    reply_value[ME * A + a] = 0;
    if
    :: count == MAJORITY ->
       if
       :: best_ballot == 0 -> best_value = BALLOT
       :: else
       fi;
       for (i : 0 .. A - 1) { write[ME * A + i] = best_value }
       phase = DONE;
       count = 0;
       best_ballot = 0;
       best_value = 0
    :: else
    fi
  }
}

active [P] proctype Proposer() {
  mtype phase = IDLE;
  byte count, best_ballot, best_value;
end:
  do
  :: d_step { phase == IDLE -> phase = READING; for (i : 0 .. A - 1) { read[ME * A + i] = true } }
  EACH_ACCEPTOR(receive_reply)
  od
}

#undef ME
#define ME (_pid - P)

inline receive_read(p) {
  d_step {
    read[p * A + ME] && promised < p + 1 ->
    promised = p + 1;
    read[p * A + ME] = false;
    reply[p * A + ME] = true;
    reply_ballot[p * A + ME] = vote_ballot;
    reply_value[p * A + ME] = vote_value
  }
}

inline receive_write(p) {
  d_step {
    write[p * A + ME] && promised <= p + 1 ->
    promised = p + 1;
    vote_ballot = p + 1;
    vote_value = write[p * A + ME];
    for (i : 0 .. L - 1) { accepted[(i * P + p) * A + ME] = vote_value }
    write[p * A + ME] = 0
  }
}

active [A] proctype Acceptor() {
  byte promised, vote_ballot, vote_value;
end:
  do
  EACH_PROPOSER(receive_read)
  EACH_PROPOSER(receive_write)
  od
}

#undef ME
#define ME (_pid - P - A)

inline receive_accept(p, a) {
  d_step {
    accepted[(ME * P + p) * A + a] && votes[p] < MAJORITY ->
    votes[p]++;
    if
    :: votes[p] == MAJORITY ->
       learned[ME * P + p] = accepted[(ME * P + p) * A + a];
       for (i : 0 .. L * P - 1) { assert(learned[i] == 0 || learned[i] == learned[ME * P + p]) }
    :: else
    fi;
    accepted[(ME * P + p) * A + a] = 0
  }
}

active [L] proctype Learner() {
  byte votes[P];
end:
  do
  EACH_VOTE(receive_accept)
  od
}
