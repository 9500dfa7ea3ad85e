/* Two-phase commit in Promela, as plait.protocols.two_phase_commit states it.
 *
 * A message is a flag that is never cleared: messages are a set that never shrinks. Every step is one d_step in the only
 * loop of its process.
 *
 * In front of it stand the sizes: N resource managers, EACH(step): one option of a do loop for each, ALL(holds): a
 * conjunction over them.
 */

mtype = { WORKING, READY, COMMITTED, ABORTED };

mtype rm[N] = WORKING;
bool prepared[N];    /* what resource managers told */
bool commit, abort;  /* what the transaction manager told */

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
