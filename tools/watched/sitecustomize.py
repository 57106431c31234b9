"""Python imports this at its start where this folder is on PYTHONPATH: it notes what it reads.

Each path that the process, or one that it starts, opens for reading under READ_FOLDER is added as a
line to the file READ_LIST. `tools.execute` starts the kernels so, and learns which modules of the
library and which recorded results a notebook depends on.
"""

import os
import sys


def note_what_is_read(folder: str, list_file: str):
    file = os.open(list_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    seen = set()

    def on_event(event, arguments):
        if event != "open" or isinstance(arguments[0], int) or arguments[0] in seen:
            return
        path, mode, flags = arguments
        seen.add(path)
        full = os.path.abspath(os.fsdecode(path))
        if full.startswith(folder + os.sep) and not flags & (os.O_WRONLY | os.O_RDWR):
            os.write(file, (full + "\n").encode())

    sys.addaudithook(on_event)


if os.environ.get("READ_LIST"):
    note_what_is_read(os.environ["READ_FOLDER"], os.environ["READ_LIST"])
