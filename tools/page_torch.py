"""PyTorch itself for the exercises in the page, from wheels that you have downloaded.

    python -m tools.page_torch torch-2.13.0-...wasm32.whl=SHA256 numpy-...wasm32.whl=SHA256
    python -m tools.page_torch --remove

Whoever publishes a wheel for Pyodide says its SHA-256. If each file has the one that you give, all
of them are copied next to the vendored Pyodide, where git ignores them. The next build of the site
loads them instead of the page's small tensor library, from its own host like everything else.
"""

import argparse
import hashlib
import json
import re
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WHEELS = ROOT / "book" / "_extra" / "vendor" / "pyodide" / "wheels"
NEEDED = ("torch", "numpy")  # what the checks import
NAME = re.compile(r"(\w+)-[^-]+(-\d[^-]*)?-[^-]+-[^-]+-[^-]+\.whl")


class Refused(Exception):
    """Why these wheels are not taken."""


def checked(given: str) -> Path:
    """The wheel of FILE=SHA256, or Refused unless the file has that sum."""
    file, _, expected = given.rpartition("=")
    if not file or not re.fullmatch("[0-9a-fA-F]{64}", expected):
        raise Refused(f"{given!r} is no FILE=SHA256: expected the wheel's file, then = and the 64 "
                      "hexadecimal digits that its publisher gives.")
    path = Path(file)
    if not path.is_file():
        raise Refused(f"there is no file {file}: download the wheel first.")
    if not NAME.fullmatch(path.name):
        raise Refused(f"{path.name} is not named like a wheel, "
                      "NAME-VERSION-PYTHON-ABI-PLATFORM.whl.")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != expected.lower():
        raise Refused(f"{path.name} has the SHA-256 {found}, expected {expected.lower()}: this is "
                      "not the file that was published. Nothing was copied; download it again.")
    return path


def take(given: list[str], target: Path = WHEELS) -> list[Path]:
    """Copy wheels, given as FILE=SHA256, into `target` and list them there in wheels.json."""
    wheels = [checked(one) for one in given]
    names = {NAME.fullmatch(path.name)[1].lower() for path in wheels}
    if missing := [name for name in NEEDED if name not in names]:
        raise Refused(f"the checks need {' and '.join(NEEDED)}: give a wheel of "
                      f"{' and '.join(missing)} as well.")
    remove(target)
    target.mkdir(parents=True)
    for path in wheels:
        shutil.copy(path, target)
    listed = [{"file": path.name, "bytes": path.stat().st_size} for path in wheels]
    (target / "wheels.json").write_text(json.dumps(listed, indent=1) + "\n", encoding="utf8")
    return wheels


def remove(target: Path = WHEELS) -> None:
    shutil.rmtree(target, ignore_errors=True)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wheels", nargs="*", metavar="FILE=SHA256")
    parser.add_argument("--remove", action="store_true", help="back to the small tensor library")
    chosen = parser.parse_args(arguments)
    if chosen.remove == bool(chosen.wheels):
        parser.error("give the wheels, or --remove")
    if chosen.remove:
        remove()
        print("The next build uses the page's small tensor library.")
        return
    try:
        taken = take(chosen.wheels, WHEELS)
    except Refused as reason:
        parser.exit(1, f"{reason}\n")
    megabytes = sum(path.stat().st_size for path in taken) / 1e6
    print(f"The next build loads {', '.join(path.name for path in taken)}: {megabytes:.1f} MB.")


if __name__ == "__main__":
    main()
