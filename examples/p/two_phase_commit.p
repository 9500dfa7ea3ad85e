// Two-phase commit: a coordinator asks all participants to prepare a transaction, and commits it if all agree in time.

enum tVote { YES, NO }

event ePrepare: (from: Coordinator, id: int);
event eVote: (id: int, vote: tVote);
event eDecision: (id: int, commit: bool);
event eTransaction: (client: machine, id: int);
event eOutcome: (id: int, commit: bool);
event eTimeout;
event eDecided: (participant: machine, id: int, commit: bool); // for the specification

machine Coordinator {
  var participants: set[Participant];
  var client: machine;
  var id: int;
  var votes: int;

  start state Init {
    entry (given: set[Participant]) {
      participants = given;
      goto Idle;
    }
    defer eTransaction;
  }

  state Idle {
    on eTransaction do (request: (client: machine, id: int)) {
      var participant: Participant;
      client = request.client;
      id = request.id;
      votes = 0;
      foreach (participant in participants) {
        send participant, ePrepare, (from = this, id = id);
      }
      if ($) { // the timer may be faster than the votes
        send this, eTimeout;
      }
      goto Collecting;
    }
    ignore eVote, eTimeout;
  }

  state Collecting {
    defer eTransaction;

    on eVote do (answer: (id: int, vote: tVote)) {
      if (answer.id != id) {
        return; // a late vote
      }
      if (answer.vote == NO) {
        Decide(false);
      }
      votes = votes + 1;
      if (votes == sizeof(participants)) {
        Decide(true);
      }
    }

    on eTimeout do {
      Decide(false);
    }
  }

  fun Decide(commit: bool) {
    var participant: Participant;
    foreach (participant in participants) {
      send participant, eDecision, (id = id, commit = commit);
    }
    send client, eOutcome, (id = id, commit = commit);
    goto Idle;
  }
}

machine Participant {
  var prepared: set[int];

  start state Working {
    on ePrepare do (request: (from: Coordinator, id: int)) {
      if ($) {
        prepared += (request.id);
        send request.from, eVote, (id = request.id, vote = YES);
      } else {
        send request.from, eVote, (id = request.id, vote = NO);
      }
    }

    on eDecision do (decision: (id: int, commit: bool)) {
      assert !decision.commit || decision.id in prepared, "a transaction is committed that was not prepared";
      prepared -= (decision.id);
      announce eDecided, (participant = this, id = decision.id, commit = decision.commit);
    }
  }
}

machine Client {
  start state Init {
    entry (config: (coordinator: Coordinator, transactions: int)) {
      var id: int;
      while (id < config.transactions) {
        send config.coordinator, eTransaction, (client = this, id = id);
        receive {
          case eOutcome: (outcome: (id: int, commit: bool)) {
            assert outcome.id == id, "an outcome of another transaction";
          }
        }
        id = id + 1;
      }
    }
  }
}

// All participants decide the same.
spec Atomicity observes eDecided {
  var decisions: map[int, bool];

  start state Watch {
    on eDecided do (decided: (participant: machine, id: int, commit: bool)) {
      if (decided.id in decisions) {
        assert decisions[decided.id] == decided.commit,
          format("{0} decides {1}, and another one did not", decided.participant, decided.commit);
      }
      decisions[decided.id] = decided.commit;
    }
  }
}

// Each transaction has an outcome.
spec Progress observes eTransaction, eOutcome {
  start cold state Nothing {
    on eTransaction goto Running;
  }
  hot state Running {
    on eOutcome goto Nothing;
  }
}

fun Start(transactions: int) {
  var participants: set[Participant];
  var coordinator: Coordinator;
  participants += (new Participant());
  participants += (new Participant());
  coordinator = new Coordinator(participants);
  new Client((coordinator = coordinator, transactions = transactions));
}

machine OneTransaction {
  start state Init {
    entry { Start(1); }
  }
}

machine TwoTransactions {
  start state Init {
    entry { Start(2); }
  }
}

module Commit = { Coordinator, Participant, Client };

test tcOne [main=OneTransaction]: assert Atomicity, Progress in (union Commit, { OneTransaction });
test tcTwo [main=TwoTransactions]: assert Atomicity, Progress in (union Commit, { TwoTransactions });
