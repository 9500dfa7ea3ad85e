"""Single-message Paxos in Promela with all loops unrolled: the fastest model for Spin that we know.

One process takes all steps, each in one d_step. State variables are bit fields of minimal width. This file unrolls
every loop, so Spin computes no index, and its state vector is as short as possible. People do not write such models by
hand, but the comparison shows how much of Spin's time depends on the model.
"""

from __future__ import annotations

IDLE, READING, DONE = 0, 1, 2


def promela(proposers: int, acceptors: int, learners: int) -> str:
    """The Promela model of Paxos with these numbers of processes."""
    majority, b_max = acceptors // 2 + 1, proposers  # ballots and values are 1 to b_max
    ps, accs, ls = range(proposers), range(acceptors), range(learners)
    ballots = range(1, b_max + 1)
    state, steps = list[str](), list[str]()

    def var(name: str, largest: int) -> None:
        state.append(f"unsigned {name} : {largest.bit_length()};")

    def step(comment: str, guard: str, *effects: str) -> None:
        body = ";\n      ".join(effects)
        steps.append(f"  /* {comment} */\n  :: d_step {{ {guard} ->\n      {body} }}")

    for p in ps:
        b = p + 1
        for field, largest in {"phase": DONE, "count": majority, "best_ballot": b_max, "best_value": b_max}.items():
            var(f"{field}_{p}", largest)
        for a in accs:  # a WRITE's slot holds its value; 0 is no message
            for kind in ("read", "repl", "repl_ballot", "repl_value", "write"):
                var(f"{kind}_{p}_{a}", 1 if kind in ("read", "repl") else b_max)
        step(
            f"proposer {p} starts",
            f"phase_{p} == {IDLE}",
            f"phase_{p} = {READING}",
            *(f"read_{p}_{a} = 1" for a in accs),
        )
        for a in accs:
            decide = [
                f"if :: best_ballot_{p} == 0 -> best_value_{p} = {b} :: else fi",
                *(f"write_{p}_{x} = best_value_{p}" for x in accs),
                f"phase_{p} = {DONE}; count_{p} = 0; best_ballot_{p} = 0; best_value_{p} = 0",
            ]
            step(
                f"proposer {p} receives READ_REPL from acceptor {a}",
                f"repl_{p}_{a} && phase_{p} == {READING}",
                f"count_{p} = count_{p} + 1",
                f"if :: repl_ballot_{p}_{a} > best_ballot_{p} -> best_ballot_{p} = repl_ballot_{p}_{a};"
                f" best_value_{p} = repl_value_{p}_{a} :: else fi",
                f"repl_{p}_{a} = 0; repl_ballot_{p}_{a} = 0; repl_value_{p}_{a} = 0",
                f"if :: count_{p} == {majority} ->\n        " + ";\n        ".join(decide) + "\n      :: else fi",
            )

    for a in accs:
        for field in ("promised", "accepted_ballot", "accepted_value"):
            var(f"{field}_{a}", b_max)
        for p in ps:
            b = p + 1
            step(
                f"acceptor {a} receives READ({b})",
                f"read_{p}_{a} && promised_{a} < {b}",
                f"read_{p}_{a} = 0; promised_{a} = {b}; repl_{p}_{a} = 1",
                f"repl_ballot_{p}_{a} = accepted_ballot_{a}; repl_value_{p}_{a} = accepted_value_{a}",
            )
            step(
                f"acceptor {a} receives WRITE({b}, value)",
                f"write_{p}_{a} && promised_{a} <= {b}",
                f"promised_{a} = {b}; accepted_ballot_{a} = {b}; accepted_value_{a} = write_{p}_{a}",
                *(f"accept_{a}_{n}_{b} = write_{p}_{a}" for n in ls),
                f"write_{p}_{a} = 0",
            )

    for n in ls:
        for b in ballots:
            var(f"votes_{n}_{b}", majority)
            var(f"learned_{n}_{b}", b_max)
            others = [f"learned_{m}_{c}" for m in ls for c in ballots if (m, c) != (n, b)]
            agree = "".join(f";\n        assert({o} == 0 || {o} == learned_{n}_{b})" for o in others)
            for a in accs:
                slot = f"accept_{a}_{n}_{b}"
                var(slot, b_max)  # the value; 0 is no message
                step(
                    f"learner {n} receives ACCEPT({b}, value) from acceptor {a}",
                    f"{slot} && votes_{n}_{b} < {majority}",
                    f"votes_{n}_{b} = votes_{n}_{b} + 1",
                    f"if :: votes_{n}_{b} == {majority} -> learned_{n}_{b} = {slot}{agree}\n      :: else fi",
                    f"{slot} = 0",
                )

    return "\n".join([*state, "", "active proctype system() {", "end:", "  do", *steps, "  od", "}", ""])
