----------------------------- MODULE LamportMutex -----------------------------
(* Mutual exclusion, the same model as plait.protocols.lamport_mutex with      *)
(* quorum=False and entries=None. Messages from one process to another arrive  *)
(* in the order in which they were sent. A request that would set a clock      *)
(* beyond the limit is never received.                                         *)
EXTENDS Naturals, Sequences

CONSTANTS N, Limit \* processes, the largest clock

Contender == 1 .. N

VARIABLES
  clock, phase, acks,
  queue,   \* queue[p][q]: the clock of q's request if p knows it, 0 for none
  channel  \* channel[p][q]: messages from p to q
vars == <<clock, phase, acks, queue, channel>>

Init ==
  /\ clock = [p \in Contender |-> 1]
  /\ phase = [p \in Contender |-> "idle"]
  /\ acks = [p \in Contender |-> {}]
  /\ queue = [p \in Contender |-> [q \in Contender |-> 0]]
  /\ channel = [p \in Contender |-> [q \in Contender |-> <<>>]]

Broadcast(p, m) ==
  channel' = [channel EXCEPT ![p] = [q \in Contender |-> IF q = p THEN <<>> ELSE Append(@[q], m)]]

Ask(p) ==
  /\ phase[p] = "idle"
  /\ phase' = [phase EXCEPT ![p] = "waiting"]
  /\ queue' = [queue EXCEPT ![p][p] = clock[p]]
  /\ Broadcast(p, <<"request", clock[p]>>)
  /\ UNCHANGED <<clock, acks>>

First(p) ==
  \A q \in Contender \ {p} :
    \/ queue[p][q] = 0
    \/ queue[p][p] < queue[p][q]
    \/ queue[p][p] = queue[p][q] /\ p < q

Enter(p) ==
  /\ phase[p] = "waiting"
  /\ acks[p] = Contender \ {p}
  /\ First(p)
  /\ phase' = [phase EXCEPT ![p] = "critical"]
  /\ UNCHANGED <<clock, acks, queue, channel>>

Leave(p) ==
  /\ phase[p] = "critical"
  /\ phase' = [phase EXCEPT ![p] = "idle"]
  /\ acks' = [acks EXCEPT ![p] = {}]
  /\ queue' = [queue EXCEPT ![p][p] = 0]
  /\ Broadcast(p, <<"release">>)
  /\ UNCHANGED clock

Acknowledge(p, q) == \* q's request
  LET m == Head(channel[q][p])
      latest == IF m[2] > clock[p] THEN m[2] ELSE clock[p]
  IN /\ m[1] = "request"
     /\ latest < Limit
     /\ clock' = [clock EXCEPT ![p] = latest + 1]
     /\ queue' = [queue EXCEPT ![p][q] = m[2]]
     /\ channel' = [channel EXCEPT ![q][p] = Tail(@), ![p][q] = Append(@, <<"ack">>)]
     /\ UNCHANGED <<phase, acks>>

Acknowledged(p, q) ==
  /\ Head(channel[q][p])[1] = "ack"
  /\ acks' = [acks EXCEPT ![p] = @ \cup {q}]
  /\ channel' = [channel EXCEPT ![q][p] = Tail(@)]
  /\ UNCHANGED <<clock, phase, queue>>

Released(p, q) ==
  /\ Head(channel[q][p])[1] = "release"
  /\ queue' = [queue EXCEPT ![p][q] = 0]
  /\ channel' = [channel EXCEPT ![q][p] = Tail(@)]
  /\ UNCHANGED <<clock, phase, acks>>

Next ==
  \E p \in Contender :
    \/ Ask(p) \/ Enter(p) \/ Leave(p)
    \/ \E q \in Contender :
         /\ channel[q][p] # <<>>
         /\ Acknowledge(p, q) \/ Acknowledged(p, q) \/ Released(p, q)

Spec == Init /\ [][Next]_vars

MutualExclusion == \A p, q \in Contender : p # q => ~(phase[p] = "critical" /\ phase[q] = "critical")
===============================================================================
