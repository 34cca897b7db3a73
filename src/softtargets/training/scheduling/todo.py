"""What is left to train, kept so that the next pack of a hundred thousand runs costs no more than that of ten."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Mapping

from softtargets.recipes import Recipe
from softtargets.training.packing import kind_of_run


class Todo(Mapping[str, Recipe]):
    """Recipes by id, each after its teacher, and which of them are ready: those whose teacher is not among them.

    Kinds are compared once, when the list is made. Taking a run out costs the same however many there are, but for
    moving some numbers in a list.

    >>> from softtargets.recipes import Digits, Distillation, MLP
    >>> teacher = Recipe(data=Digits(), model=MLP(), epochs=3)
    >>> student = teacher.replace({"regulariser": Distillation(teacher=teacher)})
    >>> todo = Todo({recipe.id: recipe for recipe in (teacher, student)})
    >>> todo.ready() == [teacher.id]
    True
    >>> _ = todo.pop(teacher.id)
    >>> todo.ready() == [student.id]
    True
    """

    def __init__(self, recipes: Mapping[str, Recipe]) -> None:
        self._recipes = dict(recipes)
        self._keys = list(self._recipes)
        self._places = {key: place for place, key in enumerate(self._keys)}
        numbers: dict[object, int] = {}  # of kinds
        self._kinds = {
            key: numbers.setdefault(kind_of_run(recipe), len(numbers))
            for key, recipe in self._recipes.items()
        }
        self._pupils: dict[str, list[str]] = {}
        self._ready: list[int] = []  # places, rising
        self._ready_of: dict[int, list[int]] = {number: [] for number in numbers.values()}  # the same by kind
        for place, (key, recipe) in enumerate(self._recipes.items()):
            if recipe.teacher is not None and recipe.teacher.id in self._recipes:
                self._pupils.setdefault(recipe.teacher.id, []).append(key)
            else:
                self._ready.append(place)
                self._ready_of[self._kinds[key]].append(place)

    def __getitem__(self, key: str) -> Recipe:
        return self._recipes[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._recipes)

    def __len__(self) -> int:
        return len(self._recipes)

    def pop(self, key: str) -> Recipe:
        """Take out a run that has come to its end; those that learn from it are then ready."""
        recipe, place = self._recipes.pop(key), self._places[key]
        for places in (self._ready, self._ready_of[self._kinds[key]]):
            found = bisect_left(places, place)
            if found < len(places) and places[found] == place:
                del places[found]
        for pupil in self._pupils.pop(key, ()):
            if pupil in self._recipes:
                for places in (self._ready, self._ready_of[self._kinds[pupil]]):
                    insort(places, self._places[pupil])
        return recipe

    def ready(self) -> list[str]:
        """The runs that could be trained now, in their order."""
        return [self._keys[place] for place in self._ready]

    def first_ready(self) -> Iterator[str]:
        """The same one after the other, as it is when each is asked for: runs may be taken out meanwhile."""
        place = -1
        while (found := bisect_right(self._ready, place)) < len(self._ready):
            place = self._ready[found]
            yield self._keys[place]

    def alike(self, key: str, after: bool = False) -> Iterator[str]:
        """Those of them that are of the same kind as a run, in their order; with `after` those that come later."""
        places = self._ready_of[self._kinds[key]]
        place = self._places[key] if after else -1
        while (found := bisect_right(places, place)) < len(places):
            place = places[found]
            yield self._keys[place]

    def count_alike(self, key: str) -> int:
        """How many there are of the kind of a run, itself included."""
        return len(self._ready_of[self._kinds[key]])
