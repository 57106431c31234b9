"""Write the API reference: one section for each module of the library, found and not listed.

The line `<!-- modules -->` of a page gives way to the sections. The modules that the package's
docstring names come first, in its order; the others follow by name.
"""

import pkgutil
import re

from sphinx.application import Sphinx

import transformer_lib

MARK = "<!-- modules -->"
SECTION = """
## {short}

```{{eval-rst}}
.. automodule:: {name}
   :members:
   :ignore-module-all:
```
"""


def modules() -> list[str]:
    """Every public module, e.g. "transformer_lib.masks"; not the Transformer
    in one file, where each part of the library has a double."""
    prefix = f"{transformer_lib.__name__}."
    found = [module.name for module in pkgutil.walk_packages(transformer_lib.__path__, prefix)]
    found = [name for name in found if "._" not in name and name != f"{prefix}one_file"]
    told = re.findall(r"\w+", transformer_lib.__doc__.partition("in this order:")[2])

    def place(name):
        top = name.split(".")[1]
        return (told.index(top) if top in told else len(told), name)

    return sorted(found, key=place)


def write_sections(app: Sphinx, docname: str, source: list[str]) -> None:
    if MARK in source[0]:
        sections = [SECTION.format(name=name, short=name.partition(".")[2]) for name in modules()]
        source[0] = source[0].replace(MARK, "\n".join(sections))


def setup(app: Sphinx) -> dict:
    app.connect("source-read", write_sections)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
