"""The command line: python -m transformer_lib train | translate | evaluate | export | verify.

    options       the options of each command, with their help
    training, translation, evaluation, export, verification
                  what each does: run(options) -> exit code
"""

import argparse
import contextlib
import errno
import os
import sys
from importlib import import_module

from transformer_lib.cli.options import parsers
from transformer_lib.guards.values import describe, fits, of_the_system


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code: 0 done, 1 failed (for `translate`, also if a line was
    left out), 2 wrong usage, 130 interrupted, 141 if nobody reads the output any more.
    """
    if arguments is not None and not fits(arguments, list[str]):
        raise TypeError(f"main: arguments is {describe(arguments)}; expected a list of strings, as "
                        "sys.argv[1:] is.")
    parser, train = parsers()
    options = parser.parse_args(arguments)
    try:
        if sys.stdout is None and options.command == "translation":
            raise ValueError("nobody would read the translation, since standard output is closed: "
                             "send it to a file, as in > translations.txt.")
        if name := getattr(options, "recipe", None) or getattr(options, "like", None):
            given = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
            given.add_argument("--accumulate")
            own_batches = given.parse_known_args(arguments)[0].accumulate is not None
            # What the command line gives takes precedence.
            training = import_module("transformer_lib.cli.training")
            train.set_defaults(**training.recipe_options(name, own_batches))
            options = parser.parse_args(arguments)
        code = import_module(f"transformer_lib.cli.{options.command}").run(options)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # as in `translate | head -1`: end without a word
        _say_no_more()
        return 141
    except (ValueError, TypeError, OSError, RuntimeError, ImportError) as error:
        _say_no_more()
        if sys.stderr is not None:  # None: closed; print would write among the translations
            print("error:", in_words(error), file=sys.stderr)
        return 1


def _say_no_more() -> None:
    """If standard output can take no more, send Python's last flush nowhere."""
    try:
        sys.stdout is None or sys.stdout.flush()
    except (OSError, ValueError):
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def in_words(error: Exception) -> str:
    """An error on one line. One from the operating system names the file, and says what to do."""
    said = of_the_system(error) if isinstance(error, OSError) else None
    if said is None and getattr(error, "errno", None) in (errno.ENOSPC, errno.EIO, errno.EBADF):
        # no file is named, so it's the output
        said = f"the output could not be written ({error.strerror}): send it elsewhere."
    return said or " ".join(str(error).split())  # torch's errors span several lines
