"""The door of the library: whatever of it is imported gets its guards here, and nowhere else.

So a module says nothing of guards, and none can be forgotten. What runs as a script, as in
`python -m transformer_lib.one_file`, is the bare code.
"""

import sys
from collections.abc import Sequence
from copy import copy
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

LIBRARY = __name__.partition(".")[0]
FREE = {"cli", "guards"}  # the one has words of its own for what it's given, the other gives them


class Door(MetaPathFinder):
    """Finds a module of the library as Python would, and guards its public names once it has run.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, *below = name.split(".")
        if package != LIBRARY or not below or below[0] in FREE:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec and spec.loader:
            spec.loader = copy(spec.loader)  # a zip has one for all that it holds
            run = spec.loader.exec_module

            def run_and_guard(module):
                run(module)
                from transformer_lib.guards import guard  # takes torch, which not everyone needs

                guard(name)

            spec.loader.exec_module = run_and_guard
        return spec


def stand() -> None:
    """Before Python's own finders; once, however often the library is imported anew."""
    if not any(type(finder).__name__ == Door.__name__ for finder in sys.meta_path):
        sys.meta_path.insert(0, Door())
