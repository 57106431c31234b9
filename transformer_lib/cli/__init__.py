"""The command line: python -m transformer_lib train | translate | evaluate | export | verify.

    options       what each command understands, and its help
    training, translation, evaluation, export, verification
                  what each does: run(options) -> exit code
"""

import argparse
import contextlib
import os
import sys
from importlib import import_module

from transformer_lib.cli.options import parsers
from transformer_lib.guards.values import of_the_system


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code: 0 done, 1 failed (for `translate`, also: a line was
    left out), 2 wrong usage, 130 interrupted, 141 when nobody reads the output any more.
    """
    parser, train = parsers()
    options = parser.parse_args(arguments)
    try:
        if name := getattr(options, "recipe", None) or getattr(options, "like", None):
            given = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
            given.add_argument("--accumulate")
            own_batches = given.parse_known_args(arguments)[0].accumulate is not None
            # What the command line gives comes first.
            training = import_module("transformer_lib.cli.training")
            train.set_defaults(**training.recipe_options(name, own_batches))
            options = parser.parse_args(arguments)
        code = import_module(f"transformer_lib.cli.{options.command}").run(options)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # as in `translate | head -1`: not a word
        with contextlib.suppress(OSError, ValueError):  # Python's last flush goes nowhere
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (ValueError, TypeError, OSError, RuntimeError, ImportError) as error:
        if sys.stderr is not None:  # closed: print would write to stdout, among translations
            print("error:", in_words(error), file=sys.stderr)
        return 1


def in_words(error: Exception) -> str:
    """An error on one line. One of the operating system says which file, and what to do."""
    said = of_the_system(error) if isinstance(error, OSError) else None
    return said or " ".join(str(error).split())  # torch's span lines
