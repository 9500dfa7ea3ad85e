// A failure detector pings nodes, and reports those that do not answer in time. The timer waits until each node has handled what
// was sent to it before, so that no node is suspected that runs.

event ePing: (from: Detector, round: int);
event ePong: (node: Node, round: int);
event eTimeout: int;
event eDown: Node;
event eCrash;
event eCrashed: Node; // for the specification

machine Detector {
  var nodes: seq[Node];
  var alive: set[Node];
  var answered: set[Node];
  var client: Client;
  var round: int;
  var rounds: int;

  start state Init {
    entry (config: (nodes: seq[Node], client: Client, rounds: int)) {
      var node: Node;
      nodes = config.nodes;
      client = config.client;
      rounds = config.rounds;
      foreach (node in nodes) {
        alive += (node);
      }
      goto Pinging;
    }
  }

  state Pinging {
    entry {
      var node: Node;
      answered = default(set[Node]);
      foreach (node in nodes) {
        send node, ePing, (from = this, round = round);
      }
      new Timer((detector = this, nodes = nodes, round = round));
    }

    on ePong do (pong: (node: Node, round: int)) {
      if (pong.round == round) {
        answered += (pong.node);
      }
    }

    on eTimeout do (of: int) {
      var node: Node;
      if (of != round) {
        return;
      }
      foreach (node in nodes) {
        if (node in alive && !(node in answered)) {
          alive -= (node);
          send client, eDown, node;
        }
      }
      round = round + 1;
      if (round < rounds) {
        goto Pinging;
      }
      goto Finished;
    }
  }

  state Finished {
    ignore ePong, eTimeout;
  }
}

// A node answers until it crashes. A crashed node drops what it gets, except for the probe of a timer.
machine Node {
  start state Up {
    on ePing do (ping: (from: Detector, round: int)) {
      send ping.from, ePong, (node = this, round = ping.round);
    }
    on eCrash goto Down with {
      announce eCrashed, this;
    }
    on eProbe do Answer;
  }

  state Down {
    ignore ePing, eCrash;
    on eProbe do Answer;
  }

  fun Answer(timer: Timer) {
    send timer, eProbed;
  }
}

event eProbe: Timer;
event eProbed;

// Fires after each node has handled what was sent to it before.
machine Timer {
  start state Init {
    entry (config: (detector: Detector, nodes: seq[Node], round: int)) {
      var node: Node;
      foreach (node in config.nodes) {
        send node, eProbe, this;
        receive {
          case eProbed: { }
        }
      }
      send config.detector, eTimeout, config.round;
    }
  }
}

machine Client {
  var down: set[Node];

  start state Watching {
    on eDown do (node: Node) {
      assert !(node in down), "a node is reported twice";
      down += (node);
    }
  }
}

// A node is reported only after it has crashed.
spec Accurate observes eCrashed, eDown {
  var crashed: set[Node];

  start state Watch {
    on eCrashed do (node: Node) {
      crashed += (node);
    }
    on eDown do (node: Node) {
      assert node in crashed, format("{0} is reported, and runs", node);
    }
  }
}

machine OneCrash {
  start state Init {
    entry {
      var nodes: seq[Node];
      var client: Client;
      nodes += (0, new Node());
      nodes += (1, new Node());
      client = new Client();
      new Detector((nodes = nodes, client = client, rounds = 2));
      send choose(nodes), eCrash;
    }
  }
}

test tcOneCrash [main=OneCrash]: assert Accurate in { OneCrash, Detector, Node, Timer, Client };
