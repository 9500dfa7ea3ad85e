// A coffee machine: a panel of buttons that users press, and a maker that takes its time and may run out of beans or water.

enum tTrouble { NO_WATER, NO_BEANS }

event eWarm;
event eIsWarm;
event eBrew;
event eIsBrewed;
event eTrouble: tTrouble;
event eCoffee: User; // the button for a coffee
event eReset; // the button that confirms that trouble is repaired
event eServed;
event eFailed;

machine Maker {
  var panel: Panel;

  start state Init {
    entry (given: Panel) {
      panel = given;
    }
    on eWarm do {
      send panel, eIsWarm;
    }
    on eBrew do {
      if ($) {
        send panel, eIsBrewed;
      } else {
        send panel, eTrouble, choose(Troubles());
      }
    }
  }

  fun Troubles(): seq[tTrouble] {
    var found: seq[tTrouble];
    found += (0, NO_WATER);
    found += (sizeof(found), NO_BEANS);
    return found;
  }
}

machine Panel {
  var maker: Maker;
  var user: User;
  var trouble: tTrouble;

  start state Init {
    defer eCoffee;
    entry {
      maker = new Maker(this);
      goto Warming;
    }
  }

  state Warming {
    defer eCoffee;
    ignore eReset;
    entry {
      send maker, eWarm;
    }
    on eIsWarm goto Ready;
  }

  state Ready {
    ignore eReset;
    on eCoffee goto Brewing with (from: User) {
      user = from;
    }
  }

  state Brewing {
    defer eCoffee;
    ignore eReset;
    entry {
      send maker, eBrew;
    }
    on eIsBrewed do {
      send user, eServed;
      goto Ready;
    }
    on eTrouble goto Broken;
    exit {
      print "the maker has stopped";
    }
  }

  state Broken {
    defer eCoffee;
    entry (found: tTrouble) {
      trouble = found;
      send user, eFailed;
    }
    on eReset goto Warming;
  }
}

machine User {
  var panel: Panel;
  var cups: int;

  start state Init {
    entry (config: (panel: Panel, cups: int)) {
      panel = config.panel;
      cups = config.cups;
      raise eServed;
    }
    on eServed goto Wanting;
  }

  state Wanting {
    entry {
      if (cups == 0) {
        raise halt;
      }
      cups = cups - 1;
      send panel, eCoffee, this;
    }
    on eServed goto Wanting;
    on eFailed do {
      send panel, eReset;
      goto Wanting;
    }
  }
}

// The maker brews only when it is warm and has no trouble that was not confirmed.
spec BrewsOnlyWhenReady observes eIsWarm, eBrew, eTrouble {
  start state Cold {
    on eIsWarm goto Warm;
    ignore eTrouble;
  }
  state Warm {
    ignore eBrew, eIsWarm;
    on eTrouble goto Cold;
  }
}

// Each order is answered.
spec Answered observes eCoffee, eServed, eFailed {
  var waiting: int;

  start cold state Quiet {
    on eCoffee goto Busy;
  }
  hot state Busy {
    entry {
      waiting = waiting + 1;
    }
    on eCoffee goto Busy;
    on eServed, eFailed do {
      waiting = waiting - 1;
      if (waiting == 0) {
        goto Quiet;
      }
    }
  }
}

machine TwoUsers {
  start state Init {
    entry {
      var panel: Panel;
      panel = new Panel();
      new User((panel = panel, cups = 2));
      new User((panel = panel, cups = 1));
    }
  }
}

test tcTwoUsers [main=TwoUsers]: assert BrewsOnlyWhenReady, Answered in { TwoUsers, User, Panel, Maker };
