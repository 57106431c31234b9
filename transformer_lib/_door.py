"""The door of the library: each of its modules gets its guards here, when it is imported.

So no module has to mention guards, and none can be forgotten. A module that runs as a script, as in
`python -m transformer_lib.one_file`, has no guards.
"""

import sys
from collections.abc import Sequence
from copy import copy
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

LIBRARY = __name__.partition(".")[0]
FREE = {"cli", "guards"}  # cli checks its own arguments, and guards holds the guards


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
            spec.loader = copy(spec.loader)  # a zip has one loader for all its modules
            run = spec.loader.exec_module

            def run_and_guard(module):
                run(module)
                from transformer_lib.guards import guard  # imports torch, which not everyone needs

                guard(name)

            spec.loader.exec_module = run_and_guard
        return spec


def stand() -> None:
    """Put the door before Python's own finders, once, however often the library is imported."""
    if not any(type(finder).__name__ == Door.__name__ for finder in sys.meta_path):
        sys.meta_path.insert(0, Door())
