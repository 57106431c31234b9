"""The setup cell: the first code cell of every notebook, the same in all of them.

It does nothing where transformer_lib can be imported. Elsewhere (Colab, Kaggle, a bare
Jupyter) it clones the repository named in _config.yml and installs the small packages that
are missing. It never installs torch, so a hosted runtime keeps its own GPU build.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

TEMPLATE = '''\
# Setup. Does nothing where the book is installed; elsewhere (Colab) it fetches the book's code.
import importlib.util

if importlib.util.find_spec("transformer_lib") is None:
    import os
    import shutil
    import subprocess
    import sys

    repository = "{repository}"
    folder = os.path.abspath("transformer-book")
    if not os.path.isdir(os.path.join(folder, "transformer_lib")):
        for remains in (folder, folder + ".partial"):
            if os.path.isdir(os.path.join(remains, ".git")):  # a clone that was interrupted
                shutil.rmtree(remains)
        clone = ["git", "clone", "--quiet", "--depth", "1", repository, folder + ".partial"]
        subprocess.run(clone, check=True)
        os.rename(folder + ".partial", folder)
    light = ["tokenizers", "safetensors", "sacrebleu", "sacremoses", "tqdm"]
    light += ["altair", "matplotlib"]
    missing = [name for name in light if importlib.util.find_spec(name) is None]
    pip = [sys.executable, "-m", "pip", "install", "--quiet"]
    if missing:
        subprocess.run([*pip, *missing], check=True)
    if importlib.util.find_spec("bertviz") is None:
        # --no-deps: its dependencies would replace other packages
        subprocess.run([*pip, "--no-deps", "bertviz"], check=True)
    sys.path.insert(0, folder)
    os.environ["PYTHONPATH"] = folder  # for commands started from the notebook'''


def repository_url() -> str:
    """The address of this repository, from its one home in _config.yml.

    Read without a YAML library, so that `make repository` runs where nothing is installed.
    """
    config = (ROOT / "_config.yml").read_text(encoding="utf8")
    found = re.search(r"^repository:\n(?:[ ].*\n)*?[ ]+url:[ ]*[\"']?([^\s\"']+)", config, re.M)
    if not found:
        raise ValueError("_config.yml has no url under repository: the book's address goes there")
    return found[1]


def setup_cell() -> str:
    """Source of the setup cell for the configured repository."""
    return TEMPLATE.format(repository=repository_url())


if __name__ == "__main__":
    print(setup_cell())
