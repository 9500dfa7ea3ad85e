---------------------------- MODULE TwoPhaseCommit ----------------------------
(* Two-phase commit, the same model as plait.protocols.two_phase_commit.       *)
(* Messages are a set that never shrinks. The transaction manager records each *)
(* prepared resource manager in a step of its own.                             *)
EXTENDS Naturals

CONSTANT N \* resource managers

RM == 1 .. N

VARIABLES rm, tm, noted, sent
vars == <<rm, tm, noted, sent>>

Init ==
  /\ rm = [r \in RM |-> "working"]
  /\ tm = "working"
  /\ noted = {}
  /\ sent = {}

Prepare(r) ==
  /\ rm[r] = "working"
  /\ rm' = [rm EXCEPT ![r] = "prepared"]
  /\ sent' = sent \cup {<<"prepared", r>>}
  /\ UNCHANGED <<tm, noted>>

ChooseToAbort(r) ==
  /\ rm[r] = "working"
  /\ rm' = [rm EXCEPT ![r] = "aborted"]
  /\ UNCHANGED <<tm, noted, sent>>

Note(r) ==
  /\ tm = "working"
  /\ <<"prepared", r>> \in sent
  /\ noted' = noted \cup {r}
  /\ UNCHANGED <<rm, tm, sent>>

Decide(outcome) ==
  /\ tm = "working"
  /\ outcome = "committed" => noted = RM
  /\ tm' = outcome
  /\ sent' = sent \cup {<<outcome>>}
  /\ UNCHANGED <<rm, noted>>

Obey(r, outcome) ==
  /\ <<outcome>> \in sent
  /\ rm' = [rm EXCEPT ![r] = outcome]
  /\ UNCHANGED <<tm, noted, sent>>

Next ==
  \/ \E outcome \in {"committed", "aborted"} :
       Decide(outcome) \/ \E r \in RM : Obey(r, outcome)
  \/ \E r \in RM : Prepare(r) \/ ChooseToAbort(r) \/ Note(r)

Spec == Init /\ [][Next]_vars

Consistency == ~ \E r, s \in RM : rm[r] = "committed" /\ rm[s] = "aborted"
===============================================================================
