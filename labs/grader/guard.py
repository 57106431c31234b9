"""Runs first in every kernel, then before and after every test. one.py sends this file's source.

A notebook that assigns to torch.allclose, by accident or not, must not change what the tests use.
So this keeps what the tests rely on as it was before the first cell, and puts it back before each
test: functions and classes, the code of functions, and the hooks by which IPython changes cells.
If some of it changed while a test ran, the test is not proved.
It runs with names and builtins of its own: a notebook may call a variable `list`.
"""

# How a decoy that ran to its last line ends.
NO_END = "nobody passes a decoy"
WRONG_REFERENCE = "a decoy whose reference is wrong found nothing wrong"


def _install(name, secret):
    """Put a function `name` into builtins, through which one.py asks for all the rest.

    secret: known here and outside. An answer to a challenge proves that the line really ran.
    """
    import builtins
    import copy
    import dis
    import hashlib
    import importlib
    import inspect
    import math
    import pkgutil
    import sys
    import traceback
    import types
    import unittest.mock

    import numpy
    import torch
    import torch.nn.functional
    import torch.testing
    from IPython.core.interactiveshell import ExecutionInfo, ExecutionResult

    import exercises.checks
    import transformer_lib

    shell, out = get_ipython(), sys.stdout  # noqa: F821 - in the builtins of every kernel
    write, flush, digest = out.write, out.flush, hashlib.sha256

    # ---- what is kept: (namespace, name, value), and the insides of Python functions
    chapters = [f"exercises.checks.{name}" for name in exercises.checks._chapters()]
    library = [
        importlib.import_module(found.name)
        for package in (transformer_lib, exercises)
        for found in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
        if found.name not in chapters
        and not any(part in found.name for part in ("visualize", "__main__"))
    ]
    modules = [builtins, math, copy, inspect, unittest.mock, numpy, torch, torch.testing, torch.nn,
               torch.nn.functional, torch.autograd, torch.linalg, transformer_lib, exercises,
               *library]
    classes = [torch.Tensor, torch.nn.Module, type(shell), type(shell).__mro__[1],
               type(shell.kernel), type(shell.display_pub), type(shell.displayhook), type(out),
               ExecutionInfo, ExecutionResult]
    classes += [value for module in [torch.nn, *library] for value in vars(module).values()
                if isinstance(value, type)
                and value.__module__.startswith(("torch.nn", "transformer_lib", "exercises"))]
    kept, insides = [], {}
    for space in dict.fromkeys([*modules, *classes]):
        for key, value in list(vars(space).items()):
            method = isinstance(space, type) and (callable(value) or isinstance(
                value, (property, classmethod, staticmethod, types.GetSetDescriptorType)))
            tool = callable(value) or isinstance(value, types.ModuleType)
            dunder = key.startswith("__")
            if (method and key not in ("__dict__", "__weakref__", "__abstractmethods__")) or (
                    tool and not isinstance(space, type) and not dunder and key != "input"
                    and not (space is torch and key == "Storage")):  # follows the default dtype
                kept.append((space, key, value))
            if isinstance(value, types.FunctionType) and (method or tool):
                insides[value] = (value.__code__, value.__defaults__, value.__kwdefaults__)
    names_of = {space: set(vars(space)) for space in dict.fromkeys(classes)}
    known = {module.__name__: module for module in modules}

    # ---- the hooks: lists that a notebook may add to, and attributes that hide a method
    manager, events = shell.input_transformer_manager, shell.events
    lists = [(holder, key, list(getattr(holder, key))) for holder, key in (
        (shell, "ast_transformers"), (shell, "input_transformers_post"),
        (manager, "cleanup_transforms"), (manager, "line_transforms"),
        (manager, "token_transformers")) if hasattr(holder, key)]
    callbacks = {event: list(found) for event, found in events.callbacks.items()}
    holders = (shell, shell.kernel, manager, events, shell.compile, shell.display_pub,
               shell.displayhook, out)
    own = [(holder, set(vars(holder))) for holder in holders if hasattr(holder, "__dict__")]
    parts = [(shell, "input_transformer_manager", manager), (shell, "events", events),
             (shell, "compile", shell.compile), (shell, "displayhook", shell.displayhook),
             (shell, "display_pub", shell.display_pub), (shell, "kernel", shell.kernel),
             (shell, "CustomTB", shell.CustomTB), (shell, "custom_exceptions", ()),
             (sys, "displayhook", sys.displayhook), (sys, "excepthook", sys.excepthook)]
    missing = object()
    files = {function.__code__.co_filename for function in insides}

    def restore():
        """Names of what had been changed; it is as it was now."""
        changed = []
        for function, inside in insides.items():
            if (function.__code__, function.__defaults__, function.__kwdefaults__) != inside:
                function.__code__, function.__defaults__, function.__kwdefaults__ = inside
                changed.append(f"the code of {function.__qualname__}")
        for space, key, value in kept:
            now = vars(space).get(key, missing)
            if now is not value:
                try:
                    setattr(space, key, value)
                except (TypeError, AttributeError):
                    continue
                # torch wraps some of its own functions while it runs: put back without a word
                if now is missing or getattr(now, "__wrapped__", None) is not value:
                    changed.append(f"{space.__name__}.{key}")
        for space, names in names_of.items():  # a new name that hides one of a base class
            for key in set(vars(space)) - names:
                if any(key in vars(base) for base in space.__mro__[1:]):
                    delattr(space, key)
                    changed.append(f"{space.__name__}.{key}")
        for module_name, module in known.items():
            if sys.modules.get(module_name) is not module:
                sys.modules[module_name] = module
                changed.append(f"the module {module_name}")
        for holder, key, value in lists:
            if list(getattr(holder, key)) != value:
                getattr(holder, key)[:] = value
                changed.append(f"IPython's {key}")
        for event, found in callbacks.items():
            if events.callbacks.get(event) != found:
                events.callbacks[event] = list(found)
                if event in ("pre_execute", "pre_run_cell"):
                    changed.append(f"IPython's {event}")
        for holder, key, value in parts:
            if getattr(holder, key) is not value and getattr(holder, key) != value:
                setattr(holder, key, value)
                changed.append(f"IPython's {key}")
        for holder, names in own:
            for key in set(vars(holder)) - names:
                if callable(vars(holder)[key]) and hasattr(type(holder), key):
                    delattr(holder, key)
                    changed.append(f"IPython's {key}")
        sys.settrace(None)
        sys.setprofile(None)
        sys.stdout = out
        return changed

    def case(loops):
        """Where a test failed: the values of its loops, the call to the student's code.

        The third value is "own words" where that code raised the error itself, so that its text
        may hold anything. loops: (first line, last line, names) of each loop of the test.
        """
        trace = sys.exc_info()[1].__traceback__
        frames = list(traceback.walk_tb(trace))
        (test, line), *inner = frames
        found = test.f_locals
        values = [f"{key} = {brief(found[key])}" for first, last, names in loops
                  if first <= line <= last for key in names if key in found]
        while trace.tb_next:
            trace = trace.tb_next
        code, call = trace.tb_frame.f_code, ""
        raised = dis.opname[code.co_code[trace.tb_lasti]] in ("RAISE_VARARGS", "RERAISE")
        kept_file = code.co_filename.startswith((sys.prefix, sys.base_prefix)) or (
            code.co_filename in files)
        theirs = not kept_file and code.co_filename != test.f_code.co_filename
        words = "own words" if raised and theirs else ""
        for frame, _ in inner:
            code = frame.f_code
            if "ipykernel" in code.co_filename and code.co_filename != test.f_code.co_filename:
                given = [f"{key}: {brief(frame.f_locals.get(key))}"
                         for key in code.co_varnames[:code.co_argcount] if key != "self"]
                call = f"{code.co_name}({', '.join(given)})"
                break
        return ", ".join(value for value in values if "?" not in value), call, words

    def brief(value):
        if isinstance(value, torch.Tensor):
            kind = "" if value.dtype == torch.float32 else f" {value.dtype}".replace("torch.", "")
            return f"{tuple(value.shape)}{kind}"
        if isinstance(value, (int, float, bool, str, tuple, type(None))) and len(repr(value)) < 40:
            return repr(value)
        return "?" if not hasattr(value, "__class__") else f"?{value.__class__.__name__}"

    moved = {}  # {challenge of a decoy: how far its reference was moved}

    def is_decoy(challenge):
        return digest(f"{secret} decoy {challenge}".encode()).digest()[0] % 2

    def reference(value, challenge):
        """What a test expects; in a decoy something else, which no right answer gives."""
        far = int.from_bytes(digest(f"{secret} far {challenge}".encode()).digest()[:2], "big") + 2
        if isinstance(value, torch.Tensor) and value.dtype != torch.bool and value.numel():
            wrong = (value + far).to(value.dtype)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            wrong = value + far
        else:
            return value
        if not is_decoy(challenge):
            return value
        moved[challenge] = far
        return wrong

    def ask(what, challenge, loops=()):
        if what == "reference":  # here the third value is what the test expects
            return reference(loops, challenge)
        lines, traced = [], sys.gettrace() is not None
        if what != "case":
            changed = restore()
            if what == "after":  # IPython's own hooks may change, and matter to no line of a test
                changed = [name for name in changed if not name.startswith("IPython's")]
                changed += ["the tracing of lines"] * traced
            lines = [f"{'changed' if what == 'before' else 'meanwhile'} {name}" for name in changed]
        else:
            found = zip(("where", "call", "raised"), case(loops), strict=True)
            lines = [f"{key} {text}" for key, text in found if text]
        refused = any(line.startswith("meanwhile") for line in lines)
        answer = "" if refused else digest(f"{secret} {what} {challenge}".encode()).hexdigest()
        if what == "after" and is_decoy(challenge):
            raise AssertionError(WRONG_REFERENCE if challenge in moved else NO_END)
        if hasattr(out, "set_parent"):  # or a notebook that replaced stdout would get no answer
            out.set_parent(shell.get_parent())
        flush()
        write("\n" + "".join(f"{challenge} {line}\n" for line in lines) + answer + "\n")
        flush()

    setattr(builtins, name, ask)
    shell.user_ns.update(exit=sys.exit, quit=sys.exit)  # an exception that costs no other cell
