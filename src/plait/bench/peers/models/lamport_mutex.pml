/* Lamport's mutual exclusion in Promela, the same model as plait.protocols.lamport_mutex with quorum=False, entries=None.
 *
 * Each process has one loop, and every step is one d_step in it. A channel per pair keeps the order of messages. It never
 * has more than three messages: an acknowledgement, a release and the next request. A request that would set a clock
 * beyond LIMIT is never received.
 *
 * plait.bench.peers.spin puts macros in front: N processes, LIMIT of the clocks, EACH(step): one option of a do loop per
 * process, ALL(holds): a conjunction over the processes.
 */

mtype = { REQUEST, ACK, RELEASE, IDLE, WAITING, CRITICAL };

chan net[N * N] = [3] of { mtype, byte }; /* from p to q at p * N + q; other messages than requests carry 0 */
byte critical;                            /* number of processes in the critical section, a function of the phases */

hidden byte i, c;

#define FROM(q) net[q * N + _pid]
#define TO(q) net[_pid * N + q]

inline receive_request(q) {
  d_step {
    clock < LIMIT && FROM(q)?[REQUEST, _] && !FROM(q)?[REQUEST, eval(LIMIT)] ->
    FROM(q)?REQUEST, c;
    clock = (c > clock -> c : clock) + 1;
    queue[q] = c;
    TO(q)!ACK, 0
  }
}

inline receive_ack(q) { d_step { FROM(q)?[ACK, _] -> FROM(q)?ACK, _; acked[q] = true } }

inline receive_release(q) { d_step { FROM(q)?[RELEASE, _] -> FROM(q)?RELEASE, _; queue[q] = 0 } }

#define BEFORE(q) (q == _pid || (acked[q] && (queue[q] == 0 || queue[_pid] < queue[q] || \
  (queue[_pid] == queue[q] && _pid < q))))

inline broadcast(kind, what) {
  for (i : 0 .. N - 1) {
    if
    :: i != _pid -> net[_pid * N + i]!kind, what
    :: else
    fi
  }
  i = 0
}

active [N] proctype Contender() {
  mtype phase = IDLE;
  byte clock = 1;
  byte queue[N]; /* the clock of each known request, 0 for none */
  bool acked[N];
end:
  do
  :: d_step { phase == IDLE -> phase = WAITING; queue[_pid] = clock; broadcast(REQUEST, clock) }
  :: d_step { phase == WAITING && ALL(BEFORE) -> phase = CRITICAL; critical++; assert(critical == 1) }
  :: d_step {
       phase == CRITICAL ->
       phase = IDLE;
       critical--;
       queue[_pid] = 0;
       for (i : 0 .. N - 1) { acked[i] = false }
       broadcast(RELEASE, 0)
     }
  EACH(receive_request)
  EACH(receive_ack)
  EACH(receive_release)
  od
}
