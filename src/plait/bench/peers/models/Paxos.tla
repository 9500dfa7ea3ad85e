-------------------------------- MODULE Paxos ---------------------------------
(* Paxos, the same model as plait.protocols.paxos with quorum=False. Proposer  *)
(* b owns ballot and value b and proposes once. Processes consume single       *)
(* messages and count them. A message that its guard rejects stays in the set. *)
EXTENDS Naturals, FiniteSets

CONSTANTS P, A, L \* proposers, acceptors, learners

Proposer == 1 .. P
Acceptor == 1 .. A
Learner == 1 .. L
Majority == A \div 2 + 1

VARIABLES
  phase, count, best,  \* of a proposer; best is a ballot and its value, 0 for none
  promised, accepted,  \* of an acceptor
  votes, learned,      \* of a learner, for each ballot
  pending              \* messages
vars == <<phase, count, best, promised, accepted, votes, learned, pending>>

None == <<0, 0>>

Init ==
  /\ phase = [p \in Proposer |-> "idle"]
  /\ count = [p \in Proposer |-> 0]
  /\ best = [p \in Proposer |-> None]
  /\ promised = [a \in Acceptor |-> 0]
  /\ accepted = [a \in Acceptor |-> None]
  /\ votes = [l \in Learner |-> [b \in Proposer |-> 0]]
  /\ learned = [l \in Learner |-> [b \in Proposer |-> 0]]
  /\ pending = {}

Start(p) ==
  /\ phase[p] = "idle"
  /\ phase' = [phase EXCEPT ![p] = "reading"]
  /\ pending' = pending \cup {[kind |-> "read", from |-> p, to |-> a] : a \in Acceptor}
  /\ UNCHANGED <<count, best, promised, accepted, votes, learned>>

Promise(m) ==
  /\ m.kind = "read"
  /\ m.from > promised[m.to]
  /\ promised' = [promised EXCEPT ![m.to] = m.from]
  /\ pending' = (pending \ {m}) \cup
       {[kind |-> "reply", from |-> m.to, to |-> m.from, vote |-> accepted[m.to]]}
  /\ UNCHANGED <<phase, count, best, accepted, votes, learned>>

Better(one, other) == IF one[1] > other[1] THEN one ELSE other

Read(m) ==
  /\ m.kind = "reply"
  /\ phase[m.to] = "reading"
  /\ LET p == m.to
         vote == Better(m.vote, best[p])
         value == IF vote = None THEN p ELSE vote[2]
     IN IF count[p] + 1 = Majority
        THEN /\ phase' = [phase EXCEPT ![p] = "done"]
             /\ count' = [count EXCEPT ![p] = 0]
             /\ best' = [best EXCEPT ![p] = None]
             /\ pending' = (pending \ {m}) \cup
                  {[kind |-> "write", from |-> p, to |-> a, value |-> value] : a \in Acceptor}
        ELSE /\ count' = [count EXCEPT ![p] = @ + 1]
             /\ best' = [best EXCEPT ![p] = vote]
             /\ pending' = pending \ {m}
             /\ UNCHANGED phase
  /\ UNCHANGED <<promised, accepted, votes, learned>>

Accept(m) ==
  /\ m.kind = "write"
  /\ m.from >= promised[m.to]
  /\ promised' = [promised EXCEPT ![m.to] = m.from]
  /\ accepted' = [accepted EXCEPT ![m.to] = <<m.from, m.value>>]
  /\ pending' = (pending \ {m}) \cup
       {[kind |-> "accept", from |-> m.to, to |-> l, ballot |-> m.from, value |-> m.value] : l \in Learner}
  /\ UNCHANGED <<phase, count, best, votes, learned>>

Learn(m) ==
  /\ m.kind = "accept"
  /\ learned[m.to][m.ballot] = 0
  /\ votes' = [votes EXCEPT ![m.to][m.ballot] = @ + 1]
  /\ learned' = IF votes[m.to][m.ballot] + 1 = Majority
                THEN [learned EXCEPT ![m.to][m.ballot] = m.value]
                ELSE learned
  /\ pending' = pending \ {m}
  /\ UNCHANGED <<phase, count, best, promised, accepted>>

Next ==
  \/ \E p \in Proposer : Start(p)
  \/ \E m \in pending : Promise(m) \/ Read(m) \/ Accept(m) \/ Learn(m)

Spec == Init /\ [][Next]_vars

Agreement ==
  Cardinality({learned[l][b] : l \in Learner, b \in Proposer} \ {0}) <= 1
===============================================================================
