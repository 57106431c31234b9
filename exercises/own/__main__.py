"""Which parts are done, for a teacher: python -m exercises.own FOLDER [FOLDER ...].

Runs the code in the folders, so use an account that you can afford to lose, as for grading.
"""

import argparse
from pathlib import Path

from exercises import own

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", metavar="FOLDER")
    folders = parser.parse_args().folders
    if missing := [folder for folder in folders if not Path(folder).is_dir()]:
        parser.error(f"there is no folder {missing[0]}")
    for folder in folders or [own.folder()]:
        print(own.parts(folder), end="\n\n")
        if (later := own.descendants(folder)) or later.refused:
            print(later, end="\n\n")
