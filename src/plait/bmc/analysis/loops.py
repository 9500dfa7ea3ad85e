"""Loops that can repeat without progress. With such a loop, no depth covers all runs."""

from __future__ import annotations

from plait.bmc.program.definition import Branch, Constant, Instruction, ProcessCode, Program, accesses, variables_of


def idle_loop(program: Program) -> Instruction | None:
    """Find a `while` that does not change the variables of its condition, or whose condition is always true.

    For other loops, the search with increasing depth finds out whether they end. For these loops it would not end.
    """
    for code in program.processes:
        for step in code.instructions:
            body = _body(code, step)
            if body is None:
                continue
            condition = step.body[0].condition  # type: ignore[union-attr]
            if isinstance(condition, Constant):
                return step
            written = set().union(*(accesses(code.instructions[place].body)[1] for place in body))
            if not (variables_of(condition) & written):
                return step
    return None


def _body(code: ProcessCode, step: Instruction) -> set[int] | None:
    """If the step is the head of a loop: the locations on paths from its first statement back to the head."""
    head = step.body[0] if len(step.body) == 1 else None
    if not isinstance(head, Branch) or not step.label.startswith("while"):
        return None
    if isinstance(head.condition, Constant) and not head.condition.value:
        return None
    return {place for place in range(step.location + 1, code.end) if _reaches(code, place, step.location)}


def _reaches(code: ProcessCode, start: int, goal: int) -> bool:
    seen, queue = {start}, [start]
    while queue:
        place = queue.pop()
        if place == goal:
            return True
        if place < code.end:
            new = [t for t in code.instructions[place].targets if t not in seen]
            seen.update(new)
            queue += new
    return False
