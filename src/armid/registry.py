"""Extension points: friction laws, estimators, readers and exporters, armid's own and those of other packages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from armid.errors import ArmidError, UnknownNameError

Thing = TypeVar("Thing")


class Registry(Mapping[str, Thing], Generic[Thing]):
    """Things by name: armid's own, those of installed packages, and those that a program has added.

    A package adds one by an entry point in the registry's group whose object is the thing itself; a program by the
    decorator `add`. Both are found when somebody first asks.

    Attributes:
        what: what the things are, for messages: friction law.
        group: of the entry points: armid.friction.
        home: module of armid that adds armid's own when it is imported.
    """

    def __init__(self, what: str, group: str, home: str) -> None:
        """Nothing is imported yet."""
        self.what, self.group, self.home = what, group, home
        self._things: dict[str, Thing] = {}
        self._complete = False

    def add(self, name: str) -> Callable[[Thing], Thing]:
        """Decorator: enter what follows under `name`; a name that is taken is refused."""

        def enter(thing: Thing) -> Thing:
            if self._things.get(name, thing) is not thing:
                raise ArmidError(f"{self.what} {name!r} is registered twice; choose another name")
            self._things[name] = thing
            return thing

        return enter

    def __getitem__(self, name: str) -> Thing:
        """The thing called `name`.

        Raises:
            UnknownNameError: there is none; the message lists those there are.
        """
        things = self._all()
        if name not in things:
            raise UnknownNameError(self.what, name, things)
        return things[name]

    def __contains__(self, name: object) -> bool:
        """Whether there is one of that name."""
        return name in self._all()

    def __iter__(self) -> Iterator[str]:
        """Names, armid's own first."""
        return iter(self._all())

    def __len__(self) -> int:
        """How many there are."""
        return len(self._all())

    def _all(self) -> dict[str, Thing]:
        if not self._complete:
            self._complete = True
            import_module(self.home)
            for point in entry_points(group=self.group):
                self.add(point.name)(point.load())
        return self._things


#: Friction laws, `armid.torque.friction.law.FrictionLaw`; here because descriptions, which come first, name them.
friction_laws: Registry[Any] = Registry("friction law", "armid.friction", "armid.torque.friction")
