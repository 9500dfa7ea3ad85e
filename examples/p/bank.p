// Clients withdraw money from a bank. The bank answers each request, and pays only what the account has.

enum tStatus { PAID, REFUSED }

type tWithdraw = (client: Client, account: int, amount: int);
type tAnswer = (account: int, amount: int, status: tStatus);

event eWithdraw: tWithdraw;
event eAnswer: tAnswer;
event eOpened: (account: int, balance: int); // for the specification

machine Bank {
  var balance: map[int, int];

  start state Open {
    entry (accounts: map[int, int]) {
      var account: int;
      balance = accounts;
      foreach (account in keys(balance)) {
        announce eOpened, (account = account, balance = balance[account]);
      }
    }

    on eWithdraw do (request: tWithdraw) {
      if (balance[request.account] >= request.amount) {
        balance[request.account] = balance[request.account] - request.amount;
        Answer(request, PAID);
      } else {
        Answer(request, REFUSED);
      }
    }
  }

  fun Answer(request: tWithdraw, status: tStatus) {
    send request.client, eAnswer, (account = request.account, amount = request.amount, status = status);
  }
}

machine Client {
  var bank: Bank;
  var account: int;
  var left: int;

  start state Init {
    entry (config: (bank: Bank, account: int, requests: int)) {
      bank = config.bank;
      account = config.account;
      left = config.requests;
      goto Withdraw;
    }
  }

  state Withdraw {
    entry {
      if (left == 0) {
        goto Done;
      }
      left = left - 1;
      send bank, eWithdraw, (client = this, account = account, amount = 1 + choose(2));
    }

    on eAnswer do (answer: tAnswer) {
      assert answer.account == account, format("an answer for the account {0}", answer.account);
      goto Withdraw;
    }
  }

  state Done {
  }
}

// The bank never pays more than an account has.
spec NeverOverdrawn observes eOpened, eAnswer {
  var rest: map[int, int];

  start state Watch {
    on eOpened do (opened: (account: int, balance: int)) {
      rest[opened.account] = opened.balance;
    }

    on eAnswer do (answer: tAnswer) {
      if (answer.status == PAID) {
        rest[answer.account] = rest[answer.account] - answer.amount;
        assert rest[answer.account] >= 0, format("the account {0} is overdrawn", answer.account);
      }
    }
  }
}

// Each request is answered.
spec Answered observes eWithdraw, eAnswer {
  var open: int;

  start cold state Quiet {
    on eWithdraw goto Waiting with { open = 1; }
  }

  hot state Waiting {
    on eWithdraw do { open = open + 1; }
    on eAnswer do {
      open = open - 1;
      if (open == 0) {
        goto Quiet;
      }
    }
  }
}

machine TwoClients {
  start state Init {
    entry {
      var bank: Bank;
      var accounts: map[int, int];
      accounts[7] = 3;
      bank = new Bank(accounts);
      new Client((bank = bank, account = 7, requests = 2));
      new Client((bank = bank, account = 7, requests = 2));
    }
  }
}

test tcTwoClients [main=TwoClients]: assert NeverOverdrawn, Answered in { TwoClients, Bank, Client };
