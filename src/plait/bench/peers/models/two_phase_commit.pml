/* Two-phase commit in Promela, the same model as plait.protocols.two_phase_commit.
 *
 * A message is a flag that is never cleared, because messages are a set that never shrinks. Each process has one loop, and
 * every step is one d_step in it.
 *
 * plait.bench.peers.spin puts macros in front: N resource managers, EACH(step): one option of a do loop per manager,
 * ALL(holds): a conjunction over the managers.
 */

mtype = { WORKING, READY, COMMITTED, ABORTED };

mtype rm[N] = WORKING;
bool prepared[N];    /* messages of resource managers */
bool commit, abort;  /* messages of the transaction manager */

hidden byte i;

#define NONE(other) for (i : 0 .. N - 1) { assert(rm[i] != other) } i = 0

active [N] proctype ResourceManager() {
end:
  do
  :: d_step { rm[_pid] == WORKING -> rm[_pid] = READY; prepared[_pid] = true }
  :: d_step { rm[_pid] == WORKING -> rm[_pid] = ABORTED; NONE(COMMITTED) }
  :: d_step { commit -> rm[_pid] = COMMITTED; NONE(ABORTED) }
  :: d_step { abort -> rm[_pid] = ABORTED; NONE(COMMITTED) }
  od
}

#define NOTED(r) noted[r]
#define NOTE(r) d_step { state == WORKING && prepared[r] -> noted[r] = true }

active proctype TransactionManager() {
  mtype state = WORKING;
  bool noted[N];
end:
  do
  EACH(NOTE)
  :: d_step { state == WORKING && ALL(NOTED) -> state = COMMITTED; commit = true }
  :: d_step { state == WORKING -> state = ABORTED; abort = true }
  od
}
