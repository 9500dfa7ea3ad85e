"""How shared objects are declared and used; what is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from plait import (
    ModelError,
    Monitor,
    Pid,
    Process,
    Shared,
    System,
    action,
    always,
    aux,
    check,
    durable,
    field,
    init,
    reachable,
)


class Store(Shared):
    value: int = 0
    other: int = 0


def act(body: Any, *, when: Any = None) -> type[Process]:
    """A process with one action."""

    class Actor(Process):
        store: Store
        kept: Any = None
        done: bool = False

        @action(when=when or (lambda self: not self.done))
        def act(self) -> None:
            self.done = True
            body(self)

    return Actor


def refused(body: Any, *, when: Any = None, **more: Any) -> str:
    """The error of a model whose only action does this."""
    store = Store()
    with pytest.raises(ModelError) as caught:
        check(System([act(body, when=when)(store=store)], **more), explore=True)  # type: ignore[call-arg]
    return f"{caught.value.message} {caught.value.hint}"


def test_handlers_use_shared_objects_as_they_are_declared() -> None:
    outside = Store()

    class Keeper(Process):
        store: Store

    System([Keeper(store=outside)])
    assert "Store0.value is read outside of a state" in refused(lambda self: outside.value)
    assert "does not declare it" in refused(lambda self: setattr(self.store, "wrong", 1))
    assert "is deleted" in refused(lambda self: delattr(self.store, "value"))
    assert "is not a shared object of the System" in refused(lambda self: setattr(self, "kept", Store()))
    assert "cannot be part of a state" in refused(lambda self: setattr(self.store, "value", object()))


class Lamp(Shared):
    lit: bool = False

    @property
    def dark(self) -> bool:
        return not self.lit

    @dark.setter
    def dark(self, value: bool) -> None:
        self.lit = not value


LAMP = Lamp()


def test_an_object_that_no_process_holds_is_refused() -> None:
    class Forgotten(Process):
        lamp = LAMP

    class Global(Process):
        @action(when=lambda self: not LAMP.lit)
        def light(self) -> None: ...

    class Inside(Process):
        @action
        def light(self) -> None:
            LAMP.lit = True

    class Named(Process):
        LAMP: Lamp  # an attribute, not the global name

        @action(when=lambda self: not self.LAMP.lit)
        def light(self) -> None:
            self.LAMP.lit = True

    with pytest.raises(ModelError, match=r"Forgotten\.lamp is a shared object, but no field"):
        System([Forgotten()])
    for cls in (Global, Inside):
        with pytest.raises(ModelError, match=rf"{cls.__name__}\.light uses LAMP, a shared object that no process"):
            System([cls()])
    with pytest.raises(ModelError, match="property lit uses LAMP, a shared object that no process"):
        System([Named(LAMP=Lamp())], properties=[always(lambda s: not LAMP.lit, name="lit")])
    assert check(System([Named(LAMP=Lamp())]), explore=True).statistics.states == 2


def test_shared_classes_have_no_handlers() -> None:
    with pytest.raises(ModelError, match=r"shared Busy\.act is a handler"):

        class Busy(Shared):
            @action
            def act(self) -> None: ...


@pytest.mark.parametrize("native", ["off", "auto"])
def test_a_property_that_can_be_set(native: Any) -> None:
    class Switch(Process):
        lamp: Lamp

        @action
        def toggle(self) -> None:
            self.lamp.dark = not self.lamp.dark

    lit = reachable(lambda s: s[Lamp].lit, name="lit")
    assert check(System([Switch(lamp=Lamp())], properties=[lit]), native=native).status == "holds"


def test_an_object_has_one_number() -> None:
    class Cell(Shared):
        n: int = 0

    class Holder(Process):
        cell: Cell

    low, high = Cell(), Cell(n=2)
    System([Holder(cell=low), Holder(cell=high)])
    System([Holder(cell=low), Holder(cell=high)])
    with pytest.raises(ModelError, match="Cell0 is Cell1 of another System"):
        System([Holder(cell=high)])


def test_a_list_is_in_one_place_only() -> None:
    def both(self: Any) -> None:
        self.kept = []
        self.store.value = self.kept

    assert "the same list object" in refused(both)


def test_guards_properties_and_monitors_do_not_write() -> None:
    def guard(self: Any) -> bool:
        self.store.value += 1
        return not self.done

    assert "the guard of Actor.act changes Store0.value" in refused(lambda self: None, when=guard)

    @always
    def changes(s: Any) -> bool:
        s[Store].value = 1
        return True

    assert "changes the state it looks at: Store0.value" in refused(lambda self: None, properties=[changes])

    class Reader(Monitor):
        last: int = 0

        def observe(self, process: Pid, event: Any) -> None:
            self.last = event.value

    assert "to a monitor, announce the value" in refused(lambda self: self.announce(self.store), monitors=[Reader()])


def test_init_methods_do_not_use_shared_objects() -> None:
    """The initial states are all combinations of what the @init methods of single processes do."""

    class Eager(Process):
        store: Store

        @init
        def begin(self) -> None:
            self.store.value = 1

    with pytest.raises(
        ModelError, match=r"Eager\.begin: Store0\.value is used by a monitor or an @init method"
    ) as caught:
        check(System([Eager(store=Store())]), explore=True)
    assert "Store(value=…)" in str(caught.value.hint)


def test_a_property_names_one_object() -> None:
    class Two(Process):
        stores: tuple[Store, Store]

        @action(when=lambda self: self.stores[0].value == 0)
        def swap(self) -> None:
            self.stores[0].value, self.stores[1].value = 1, 2

    def system(prop: Any) -> System:
        return System([Two(stores=(Store(), Store()))], properties=[prop])

    assert check(system(reachable(lambda s: [x.value for x in s.shared] == [1, 2], name="both")))  # type: ignore[attr-defined]
    assert check(system(reachable(lambda s: s[Two][0].stores[1].value == 2, name="second")))
    with pytest.raises(ModelError, match="has 2 shared objects of the class Store"):
        check(system(always(lambda s: s[Store].value == 0, name="which")))

    class Unknown(Shared): ...

    with pytest.raises(ModelError, match="has no shared objects of the class Unknown"):
        check(system(always(lambda s: s[Unknown] is None, name="none")))


def test_declarations() -> None:
    with pytest.raises(ModelError, match=r"Bad\.id: this name is reserved"):

        class Bad(Shared):
            id: int = 0

    with pytest.raises(ModelError, match=r"shared Odd\.value is declared durable"):

        class Odd(Shared):
            value: int = durable(0)

    with pytest.raises(ModelError, match=r"shared Hidden\.log is declared aux"):

        class Hidden(Shared):
            log: int = aux(0)

    with pytest.raises(ModelError, match="mutable default"):

        class Loose(Shared):
            items: list[int] = []  # noqa: RUF012

    class Keeper(Process):
        store: Any
        more: Any = None

    with pytest.raises(ModelError, match="two different classes are called Keeper"):
        System([Keeper(store=type("Keeper", (Shared,), {"__module__": __name__})())])
    with pytest.raises(ModelError, match="a set of shared objects gives them no order"):
        System([Keeper(store={Store(), Store()})])
    shared: list[int] = []

    class Holder(Shared):
        items: list[int] = field(default_factory=list)

    with pytest.raises(ModelError, match=r"Keeper0\.more and Holder0\.items hold the same list object"):
        System([Keeper(store=Holder(items=shared), more=shared)])
