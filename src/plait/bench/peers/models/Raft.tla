--------------------------------- MODULE Raft ---------------------------------
(* Raft with logs, the same model as plait.protocols.raft with quorum=False:   *)
(* replies are consumed one by one. In each term, servers 1 to Candidates may  *)
(* stand for election. A message that its guard rejects stays pending. Two     *)
(* equal messages may be pending, so the messages are a bag.                   *)
EXTENDS Naturals, Sequences, FiniteSets, Bags

CONSTANTS N, Candidates, Terms, Entries \* servers; entries of a full log

Server == 1 .. N
Half == N \div 2 \* the other servers that make a majority with a server

VARIABLES
  role, term,
  voted,   \* the server for which it voted in its term, 0 for none
  log,     \* a sequence of entries: <<term, author>>
  commit,  \* the entries up to this index are committed
  votes,   \* of a candidate: the other servers that voted for it
  match,   \* of a leader: match[s][f], 0 if unknown
  pending  \* messages
vars == <<role, term, voted, log, commit, votes, match, pending>>

Nothing == [s \in Server |-> 0]

Init ==
  /\ role = [s \in Server |-> "follower"]
  /\ term = [s \in Server |-> 0]
  /\ voted = [s \in Server |-> 0]
  /\ log = [s \in Server |-> <<>>]
  /\ commit = [s \in Server |-> 0]
  /\ votes = [s \in Server |-> {}]
  /\ match = [s \in Server |-> Nothing]
  /\ pending = EmptyBag

Max(i, j) == IF i > j THEN i ELSE j
Min(i, j) == IF i < j THEN i ELSE j
TermAt(entries, i) == IF i = 0 THEN 0 ELSE entries[i][1]
LastTerm(s) == TermAt(log[s], Len(log[s]))

Send(messages) == pending' = pending (+) SetToBag(messages)
Consume(m) == pending' = pending (-) SetToBag({m})
Reply(m, messages) == pending' = (pending (-) SetToBag({m})) (+) SetToBag(messages)

(* A leader's entries after the index i, for the server f. *)
Replicate(s, f, entries, i) ==
  [kind |-> "append", from |-> s, to |-> f, term |-> term[s], previous |-> i,
   previousTerm |-> TermAt(entries, i), entries |-> SubSeq(entries, i + 1, Len(entries)), commit |-> commit[s]]

-------------------------------------------------------------------------------
(* Election *)

TimeOut(s) ==
  /\ role[s] # "leader"
  /\ s <= Candidates
  /\ term[s] < Terms
  /\ role' = [role EXCEPT ![s] = "candidate"]
  /\ term' = [term EXCEPT ![s] = @ + 1]
  /\ voted' = [voted EXCEPT ![s] = s]
  /\ votes' = [votes EXCEPT ![s] = {}]
  /\ match' = [match EXCEPT ![s] = Nothing]
  /\ Send({[kind |-> "request", from |-> s, to |-> f, term |-> term[s] + 1,
            lastTerm |-> LastTerm(s), length |-> Len(log[s])] : f \in Server \ {s}})
  /\ UNCHANGED <<log, commit>>

UpToDate(m) ==
  \/ m.lastTerm > LastTerm(m.to)
  \/ m.lastTerm = LastTerm(m.to) /\ m.length >= Len(log[m.to])

Vote(m) ==
  LET s == m.to
      new == m.term > term[s]
  IN /\ m.kind = "request"
     /\ new \/ (m.term = term[s] /\ voted[s] = 0)
     /\ role' = IF new THEN [role EXCEPT ![s] = "follower"] ELSE role
     /\ term' = [term EXCEPT ![s] = m.term]
     /\ votes' = IF new THEN [votes EXCEPT ![s] = {}] ELSE votes
     /\ match' = IF new THEN [match EXCEPT ![s] = Nothing] ELSE match
     /\ IF UpToDate(m)
        THEN /\ voted' = [voted EXCEPT ![s] = m.from]
             /\ Reply(m, {[kind |-> "vote", from |-> s, to |-> m.from, term |-> m.term]})
        ELSE /\ voted' = [voted EXCEPT ![s] = 0]
             /\ Consume(m)
     /\ UNCHANGED <<log, commit>>

Win(m) ==
  LET s == m.to
      voters == votes[s] \cup {m.from}
  IN /\ m.kind = "vote"
     /\ role[s] = "candidate"
     /\ m.term = term[s]
     /\ IF Cardinality(voters) = Half
        THEN /\ role' = [role EXCEPT ![s] = "leader"]
             /\ votes' = [votes EXCEPT ![s] = {}]
             /\ Reply(m, IF log[s] = <<>>
                         THEN {}
                         ELSE {Replicate(s, f, log[s], Len(log[s])) : f \in Server \ {s}})
        ELSE /\ votes' = [votes EXCEPT ![s] = voters]
             /\ Consume(m)
             /\ UNCHANGED role
     /\ UNCHANGED <<term, voted, log, commit, match>>

-------------------------------------------------------------------------------
(* Replication *)

Request(s) ==
  LET entries == Append(log[s], <<term[s], s>>)
  IN /\ role[s] = "leader"
     /\ Len(log[s]) < Entries
     /\ log' = [log EXCEPT ![s] = entries]
     /\ Send({Replicate(s, f, entries, Len(log[s])) : f \in Server \ {s}})
     /\ UNCHANGED <<role, term, voted, commit, votes, match>>

Take(m) ==
  LET s == m.to
      new == m.term > term[s]
      fits == Len(log[s]) >= m.previous /\ TermAt(log[s], m.previous) = m.previousTerm
      last == m.previous + Len(m.entries)
      same == SubSeq(log[s], m.previous + 1, Min(last, Len(log[s]))) = m.entries
  IN /\ m.kind = "append"
     /\ m.term >= term[s]
     /\ role' = [role EXCEPT ![s] = "follower"]
     /\ term' = [term EXCEPT ![s] = m.term]
     /\ voted' = IF new THEN [voted EXCEPT ![s] = 0] ELSE voted
     /\ votes' = IF new THEN [votes EXCEPT ![s] = {}] ELSE votes
     /\ match' = IF new THEN [match EXCEPT ![s] = Nothing] ELSE match
     /\ IF fits
        THEN /\ log' = IF same \* never remove entries that an older message does not contain
                       THEN log
                       ELSE [log EXCEPT ![s] = SubSeq(@, 1, m.previous) \o m.entries]
             /\ commit' = [commit EXCEPT ![s] = Max(@, Min(m.commit, last))]
             /\ Reply(m, {[kind |-> "appended", from |-> s, to |-> m.from, term |-> m.term, match |-> last]})
        ELSE /\ Reply(m, {[kind |-> "refused", from |-> s, to |-> m.from, term |-> m.term, previous |-> m.previous]})
             /\ UNCHANGED <<log, commit>>

BackUp(m) ==
  LET s == m.to
  IN /\ m.kind = "refused"
     /\ role[s] = "leader"
     /\ m.term = term[s]
     /\ Reply(m, {Replicate(s, m.from, log[s], m.previous - 1)})
     /\ UNCHANGED <<role, term, voted, log, commit, votes, match>>

(* The largest index that Half other servers have. *)
Replicated(known) ==
  LET enough == {i \in 0 .. Entries : i = 0 \/ Cardinality({f \in Server : known[f] >= i}) >= Half}
  IN CHOOSE i \in enough : \A j \in enough : j <= i

Advance(m) ==
  LET s == m.to
      known == [match[s] EXCEPT ![m.from] = Max(@, m.match)]
      index == Replicated(known)
  IN /\ m.kind = "appended"
     /\ role[s] = "leader"
     /\ m.term = term[s]
     /\ match' = [match EXCEPT ![s] = known]
     /\ commit' = IF index > commit[s] /\ TermAt(log[s], index) = term[s]
                  THEN [commit EXCEPT ![s] = index]
                  ELSE commit
     /\ Consume(m)
     /\ UNCHANGED <<role, term, voted, log, votes>>

Next ==
  \/ \E s \in Server : TimeOut(s) \/ Request(s)
  \/ \E m \in BagToSet(pending) : Vote(m) \/ Win(m) \/ Take(m) \/ BackUp(m) \/ Advance(m)

Spec == Init /\ [][Next]_vars

-------------------------------------------------------------------------------
(* The properties of figure 3 of the paper *)

Later(s) == (s + 1) .. N \* each pair of servers once
Leader == {s \in Server : role[s] = "leader"}

ElectionSafety == \A s, t \in Leader : s # t => term[s] # term[t]

Prefix(entries, i) == SubSeq(entries, 1, Min(i, Len(entries)))

LogMatching ==
  \A s \in Server : \A t \in Later(s) :
    \A i \in 1 .. Min(Len(log[s]), Len(log[t])) :
      log[s][i][1] = log[t][i][1] => Prefix(log[s], i) = Prefix(log[t], i)

LeaderCompleteness ==
  \A s \in Leader : \A t \in Server :
    commit[t] > 0 /\ term[t] <= term[s] => Prefix(log[s], commit[t]) = Prefix(log[t], commit[t])

Committed(s) == Min(commit[s], Len(log[s]))

StateMachineSafety ==
  \A s \in Server : \A t \in Later(s) :
    \A i \in 1 .. Min(Committed(s), Committed(t)) : log[s][i] = log[t][i]
===============================================================================
