"""Sources of models whose processes keep some of their fields in shared objects.

The source of a model without shared state is rewritten: a field becomes one of a shared object, and every use of it goes
through one of several references. Two of the objects are of one class, and all processes hold the same.
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection

_CLASSES = """class Store(Shared):
{fields}

class Hub(Shared):
    store: Store

STORE, SPARE = Store(), Store()
HUB = Hub(store=STORE)

"""
_HOLDS = """    store: Store
    again: Store
    stores: tuple[Store, ...]
    hub: Hub
"""
_GIVEN = "store=STORE, again=STORE, stores=(STORE, SPARE), hub=HUB, "
_PATHS = ("self.store",) * 5 + ("self.again", "self.stores[0]", "self.hub.store")


def sharing(source: str, role: str, names: Collection[str], rng: random.Random, spare: float = 0) -> str:
    """The source, with these fields of a role in shared objects. Properties read them through a process.

    `spare` is how often a use goes to the second object instead.
    """
    fields = []
    for name in names:
        (line,) = re.findall(rf"^    {name}: .*$", source[source.index(f"\nclass {role}(") :], re.M)[:1]
        fields.append(line)
        source = source.replace(f"{line}\n", "", 1)
    either = "|".join(names)

    def path(found: re.Match[str]) -> str:
        return f"{'self.stores[1]' if rng.random() < spare else rng.choice(_PATHS)}.{found[1]}"

    source = re.sub(rf"\bself\.({either})\b", path, source)
    source = re.sub(rf"\bp\.({either})\b", r"p.store.\1", source)
    head = re.search(rf"^class {role}\(.*\):$", source, re.M)
    assert head is not None
    made = _CLASSES.format(fields="\n".join(fields))
    before, after = source[: head.start()], source[head.end() + 1 :]
    system = after.rindex("system = System(")
    made_of = re.sub(rf", ({either})=\w+", "", after[system:])
    after = after[:system] + re.sub(rf"\b{role}\((?!, )", f"{role}({_GIVEN}", made_of)
    return f"{before}{made}{head[0]}\n{_HOLDS}{after}"
