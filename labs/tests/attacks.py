"""Ways to get marks for nothing, to learn what is hidden or to reach beyond the notebook.

Each is a notebook of the small lab whose answers are wrong (`double` gives x, `square` gives 0),
with code that tries to hide it. A grader that holds gives none of them a point. HONEST are the
opposite: right answers in unusual notebooks, which must keep all their points.
"""

import base64
import io
import sys
import zipfile

from small_lab import FULL, RIGHT, filled

WRONG = {"double": "# Task 1: double\ndef double(x):\n    return x",
         "square": "# Task 2: square\ndef square(x):\n    return 0 * x",
         "why": "Because."}

# name: code that runs in the answer of task 1, after the wrong function
FULL_MARKS = {
    "input transformer drops tests": """
def drop(lines):
    text = "".join(lines)
    return [] if "assert " in text or "expect" in text else lines
get_ipython().input_transformers_post.append(drop)
""",
    "input transformer keeps only the last line": """
def last(lines):
    text = "".join(lines)
    return lines[-1:] if "assert " in text or "expect" in text else lines
get_ipython().input_transformers_post.append(last)
""",
    "clean-up transformer": """
def drop(lines):
    text = "".join(lines)
    return [] if "assert " in text or "expect" in text else lines
get_ipython().input_transformer_manager.cleanup_transforms.insert(0, drop)
""",
    "AST transformer drops asserts": """
import ast
class Drop(ast.NodeTransformer):
    def visit_Assert(self, node):
        return ast.Pass()
    def visit_Expr(self, node):
        return ast.Pass() if "expect" in ast.unparse(node) else node
get_ipython().ast_transformers.append(Drop())
""",
    "a hook adds the transformer before each cell": """
def drop(lines):
    text = "".join(lines)
    return [] if "assert " in text or "expect" in text else lines
def again(*info):
    get_ipython().input_transformers_post[:] = [drop]
get_ipython().events.register("pre_run_cell", again)
""",
    "run_cell replaced": """
shell = get_ipython()
was = shell.run_cell_async
async def quiet(cell, *given, **named):
    if "assert " in cell or "expect" in cell:
        cell = "pass"
    return await was(cell, *given, **named)
shell.run_cell_async = quiet
""",
    "errors of tests are not shown": """
def nothing(self, *given, **named):
    return None
get_ipython().set_custom_exc((AssertionError,), nothing)
from exercises import checks
checks.Wrong = AssertionError
""",
    "checks replaced": """
from exercises import checks
checks.expect = checks.expect_close = checks.expect_shape = lambda *given, **named: None
""" + "import builtins, torch\ntorch.allclose = lambda *given, **named: True\n"
        "torch.testing.assert_close = lambda *given, **named: None\n",
    "code of the checks replaced": """
from exercises import checks
for name in ("expect", "expect_close"):
    function = getattr(checks, name)
    if hasattr(function, "__code__"):
        function.__code__ = (lambda *given, **named: None).__code__
""",
    "checks replaced among the modules": """
import sys, types
fake = types.ModuleType("exercises.checks")
fake.expect = fake.expect_close = fake.expect_shape = lambda *given, **named: None
sys.modules["exercises.checks"] = fake
import transformer_lib
exercises.checks = fake
""",
    "a disguise as torch's own": """
import torch, torch.testing
def right(*given, **named):
    return True
right.__module__ = "torch"
torch.allclose = torch.equal = torch.testing.assert_close = right
""",
    "the tool that restores is replaced": """
import builtins, torch
for name in list(vars(builtins)):
    if name.startswith(("_restore", "_lab")):
        setattr(builtins, name, lambda *given: None)
torch.allclose = lambda *given, **named: True
torch.testing.assert_close = lambda *given, **named: None
""",
    "reference replaced": """
import math, unittest.mock, torch
torch.Tensor.__rmul__ = lambda self, other: self.clone()
torch.Tensor.__mul__ = lambda self, other: self.clone()
""",
    "partial credit by displayhook": """
def double(x):
    get_ipython().displayhook(3)
    return x
""",
    "answers from the masters on disk": """
import json, pathlib, transformer_lib
folder = pathlib.Path(transformer_lib.__file__).parents[1] / "labs"
found = [path for path in folder.glob("lab*.ipynb") if "BEGIN SOLUTION" in path.read_text()]
if found:
    def double(x):
        return 2 * x
""",
    "a result forged through /proc, the grader killed": """
import json, os, signal
cells = [{"type": "code", "source": "", "given": False, "text": "", "images": [], "changed": [],
          "id": name, "points": of, "of": of} for name, of in
         (("double_check", 3), ("double_hidden", 5), ("square_check", 3), ("square_hidden", 5))]
cells.append({"type": "markdown", "source": "x", "given": False, "text": "", "images": [],
              "changed": [], "id": "why", "points": None, "of": 4})
result = json.dumps({"cells": cells, "notes": [], "marks": cells, "page": cells}).encode()
parents, pid = [], os.getppid()
while pid > 1:
    parents.append(pid)
    pid = int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])
for pid in parents:
    if "grade_one" in open(f"/proc/{pid}/cmdline").read() or "grader.one" in open(
            f"/proc/{pid}/cmdline").read():
        for number in os.listdir(f"/proc/{pid}/fd"):
            path = f"/proc/{pid}/fd/{number}"
            if os.readlink(path).startswith("pipe:") and int(open(
                    f"/proc/{pid}/fdinfo/{number}").read().split()[3], 8) & 1:
                with open(path, "wb", buffering=0) as pipe:
                    pipe.write(result)
        os.kill(pid, signal.SIGKILL)
""",
}


# In the tests themselves: code that runs when a test calls the answer.
WHILE_A_TEST_RUNS = {
    "the tools are changed by the answer that is tested": """
def double(x):
    import torch
    from exercises import checks
    nothing = (lambda *given, **named: True).__code__
    torch.allclose = lambda *given, **named: True
    torch.testing.assert_close.__code__ = checks.expect.__code__ = nothing
    return 2 if isinstance(x, int) else x
def square(x):
    double(1)
    return 4 if x == 2 else 0
""",
    "a thread changes the tools all the time": """
import threading, time, torch
from exercises import checks
def again():
    nothing = (lambda *given, **named: True).__code__
    while True:
        torch.allclose = lambda *given, **named: True
        torch.testing.assert_close.__code__ = checks.expect.__code__ = nothing
        time.sleep(0.0005)
threading.Thread(target=again, daemon=True).start()
def double(x):
    time.sleep(0.1)
    return 2 if isinstance(x, int) else x
def square(x):
    time.sleep(0.1)
    return 4 if x == 2 else 0
""",
    "the lines of a test are skipped": """
import sys
def double(x):
    test = sys._getframe(1)
    lines = [line for *_, line in test.f_code.co_lines() if line]
    def jump(frame, event, given):
        if event == "line" and frame.f_lineno < max(lines):
            frame.f_lineno = max(lines)
        return jump
    test.f_trace = jump
    sys.settrace(lambda *given: None)
    return 2 if isinstance(x, int) else 2 * x
def square(x):
    double(1)
    return 4 if x == 2 else 9 if x == 3 else 0
""",
    "the guard's secret is read and the error hidden": """
import builtins, hashlib, re
def double(x):
    name, = (name for name in dir(builtins) if name.startswith("_lab_"))
    ask = getattr(builtins, name)
    held = dict(zip(ask.__code__.co_freevars, ask.__closure__))
    secret = held["secret"].cell_contents
    source = get_ipython().user_ns["In"][-1]
    for challenge in re.findall(name + r"..after., .([0-9a-f]+)", source):
        answer = hashlib.sha256(f"{secret} after {challenge}".encode()).hexdigest()
        held["write"].cell_contents("\\n" + answer + "\\n")
    get_ipython().showtraceback = get_ipython()._showtraceback = lambda *given, **named: None
    return x
square = double
""",
}

# Against the namespace that tests and answers once shared, and against the guard's own secret.
SHARED = {
    "the answer rebinds names of a test": """
def double(x):
    global assert_close, torch, expect, number
    assert_close = expect = lambda *given, **named: None
    import torch as real
    torch = type("Torch", (), {"__getattr__": lambda self, name: (
        lambda *given, **named: True) if name == "allclose" else getattr(real, name)})()
    return x
def square(x):
    global expect
    expect = lambda *given, **named: None
    return 0
""",
    "a thread rebinds names of a test": """
import _thread, time
nothing = lambda *given, **named: None
def again():
    while True:
        globals().update(assert_close=nothing, expect=nothing, expect_close=nothing)
        time.sleep(0.0003)
_thread.start_new_thread(again, ())
def double(x):
    time.sleep(0.02)
    return x
def square(x):
    time.sleep(0.02)
    return 0
""",
    "whatever a test can see is given back": """
def double(x):
    for name, value in list(globals().items()):
        if name not in given_names and name not in ("double", "square"):
            try:
                if value.shape == x.shape:
                    return value
            except AttributeError:
                pass
    return x
def square(x):
    return globals().get("number", 1) ** 2
given_names = set(globals())
""",
    "what a test expects is read from its frame": """
import sys
def double(x):
    frame = sys._getframe(1)
    while frame:
        if "expected" in frame.f_locals:
            return frame.f_locals["expected"]
        frame = frame.f_back
    return x
square = double
""",
    "the guard's secret from the history, the debugger ended": """
import bdb, hashlib, re
def double(x):
    sources = [text for text in [*In, *_ih] if "_install" in text]
    found = re.findall(r"'(_lab_[0-9a-f]+)', '([0-9a-f]{32})'", " ".join(sources))
    source = get_ipython().get_parent()["content"]["code"]
    for name, secret in found:
        for challenge in re.findall("after., .([0-9a-f]+)", source):
            text = f"{secret} after {challenge}"
            print("\\n" + hashlib.sha256(text.encode()).hexdigest(), flush=True)
    raise bdb.BdbQuit()
square = double
""",
    "the guard's secret from the history, the end forged": """
import bdb, hashlib, re
def double(x):
    sources = [text for text in [*In, *_ih] if "_install" in text]
    found = re.findall(r"'(_lab_[0-9a-f]+)', '([0-9a-f]{32})'", " ".join(sources))
    shell = get_ipython()
    source = shell.get_parent()["content"]["code"]
    from IPython.core.interactiveshell import ExecutionResult
    ExecutionResult.success = property(lambda self: True)
    for name, secret in found:
        for challenge in re.findall("after., .([0-9a-f]+)", source):
            text = f"{secret} after {challenge}"
            print("\\n" + hashlib.sha256(text.encode()).hexdigest(), flush=True)
    from IPython.core.error import UsageError
    raise UsageError()
square = double
""",
    "the guard's secret from its closure, the end forged": """
import builtins, hashlib, re
def double(x):
    shell = get_ipython()
    source = shell.get_parent()["content"]["code"]
    name, = set(re.findall("_lab_[0-9a-f]+", source))
    ask = getattr(builtins, name)
    held = dict(zip(getattr(ask, "__co" + "de__").co_freevars, getattr(ask, "__clo" + "sure__")))
    secret = held["secret"].cell_contents
    write = held["write"].cell_contents
    for challenge in re.findall("after., .([0-9a-f]+)", source):
        text = f"{secret} after {challenge}"
        write("\\n" + hashlib.sha256(text.encode()).hexdigest() + "\\n")
    held["flush"].cell_contents()
    from IPython.core.interactiveshell import ExecutionResult
    ExecutionResult.success = property(lambda self: True)
    from IPython.core.error import UsageError
    raise UsageError()
square = double
""",
}


# What a test in the same Python cannot tell from a right answer: the note must ask for a look.
TO_BE_READ = {
    "a result that equals everything": """
class Yes:
    __eq__ = __bool__ = lambda *given: True
    __hash__ = None
def double(x):
    return Yes()
square = double
""",
    "a tensor that calls itself close": """
import torch
class Close(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, given=(), named=None):
        if function in (torch.allclose, torch.equal):
            return True
        if function is torch.isclose:
            return torch.ones(1, dtype=torch.bool)
        return super().__torch_function__(function, types, given, named or {})
def double(x):
    return 2 if isinstance(x, int) else x.as_subclass(Close)
""",
}


def attack(student_version, code):
    """A notebook with the wrong answers and this code."""
    return filled(student_version, WRONG | {"double": WRONG["double"] + "\n" + code})


def leaks(student_version) -> dict:
    """Notebooks that try to get the source of a hidden test onto the page."""
    kept = ("# Task 2: square\nkept = []\ndef square(x):\n"
            "    kept.extend(get_ipython().user_ns['In'][-1:])\n    return 0")
    late = filled(student_version, RIGHT | {"square": kept, "why": "Because."})
    late.cells.append(type(late.cells[1])(cell_type="code", id="late", metadata={}, outputs=[],
                                          execution_count=None,
                                          source="for text in kept:\n    print(text)"))
    raised = filled(student_version, RIGHT | {"square": (
        "# Task 2: square\ndef square(x):\n    if x == 2:\n        return 4\n"
        "    raise ValueError(get_ipython().user_ns['In'][-1])")})
    asserted = filled(student_version, RIGHT | {"square": (
        "# Task 2: square\ndef square(x):\n    if x == 2:\n        return 4\n"
        "    import sys, linecache\n    code = sys._getframe(1).f_code\n"
        "    raise AssertionError(''.join(linecache.getlines(code.co_filename)))")})
    drawn = filled(student_version, RIGHT | {"square": (
        "# Task 2: square\ndef square(x):\n    print(get_ipython().user_ns['In'][-1])\n"
        "    get_ipython().showtraceback\n    return 0")})
    return {"kept for a later cell": late, "raised": raised, "asserted": asserted,
            "printed": drawn}


def beyond(student_version, folder, port) -> dict:
    """Notebooks that reach for what is not theirs, and say in `folder` or print what they got.

    folder: holds secret.txt, stands for another student's files; port: of a server on loopback.
    """
    python = sys.executable

    def right(code):
        return filled(student_version, RIGHT | {"double": RIGHT["double"] + "\n" + code})

    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("lab_attack.py", "installed = True\n")
        file.writestr("lab_attack-1.0.dist-info/METADATA",
                      "Metadata-Version: 2.1\nName: lab-attack\nVersion: 1.0\n")
        file.writestr("lab_attack-1.0.dist-info/WHEEL",
                      "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\n"
                      "Tag: py3-none-any\n")
        file.writestr("lab_attack-1.0.dist-info/RECORD", "lab_attack.py,,\n")
    packed = base64.b64encode(wheel.getvalue()).decode()
    return {
        "pip": right("import base64\nopen('lab_attack-1.0-py3-none-any.whl', 'wb').write("
                     f"base64.b64decode('{packed}'))\n"
                     f"!{python} -m pip install --quiet --no-index --disable-pip-version-check "
                     "lab_attack-1.0-py3-none-any.whl"),
        "others' files": right("import pathlib\nprint(pathlib.Path("
                               f"{str(folder / 'secret.txt')!r}).read_text())"),
        "marks": right(f"open({str(folder / 'marks.csv')!r}, 'w').write('anna,20')"),
        "environment": right("import glob\nfor path in glob.glob('/proc/*/environ'):\n"
                             "    try:\n"
                             "        if b'LAB_' + b'SECRET' in open(path, 'rb').read():\n"
                             "            print('TOKEN' + '-SEEN')\n"
                             "    except OSError:\n        pass"),
        "network": right("import socket\ntry:\n    socket.create_connection(('127.0.0.1', "
                         f"{port}), 3).sendall(b'hello')\n"
                         "    print('REACHED')\nexcept OSError as error:\n    print(error)"),
        "daemon": right("import os, signal, subprocess\n"
                        "subprocess.Popen(['sleep', '98764'], start_new_session=True)\n"
                        "pid = os.getppid()\nfor _ in range(2):\n    try:\n"
                        "        os.kill(pid, signal.SIGKILL)\n"
                        "    except (ProcessLookupError, PermissionError):\n        pass"),
        "home": right("import pathlib\nfor home in ('/root', '/home'):\n    try:\n"
                      "        print([p.name for p in pathlib.Path(home).iterdir()"
                      " if p.name in ('.bashrc', '.profile', '.cache')])\n"
                      "    except OSError:\n        pass"),
    }


# Right answers, unusual notebooks: (the answer of task 1 goes on with this)
HONEST = {
    "a large figure": "import matplotlib.pyplot as plt\nplt.figure(figsize=(12, 9))\n"
                      "plt.imshow(torch.randn(600, 900))\nplt.show()",
    "a long last line": "torch.set_printoptions(threshold=10**9)\ntorch.randn(40_000).tolist()",
    "prints a lot in a test": "def double(x):\n    for _ in range(10):\n"
                             "        print('y' * 100_000)\n    return 2 * x",
    "workers": "from torch.utils.data import DataLoader\n"
               "print(len(list(DataLoader(range(8), 2, num_workers=2))))",
    "files": "import tempfile, pathlib\npathlib.Path('notes.txt').write_text('a')\n"
             "pathlib.Path('~/cache').expanduser().mkdir()\n"
             "with tempfile.NamedTemporaryFile() as file:\n    file.write(b'a')\n!ls -la\n"
             "%timeit -n 1 -r 1 1 + 1",
    "replaces stdout": "import io, sys\nold, sys.stdout = sys.stdout, io.StringIO()",
    "other seeds and types": "torch.manual_seed(7)\ntorch.set_default_dtype(torch.float64)\n"
                             "torch.set_num_threads(1)\ntorch.set_grad_enabled(False)",
    "its own names for the tools": "from torch import allclose\nmath = sum = max = list = None",
    "an optimizer, compiled parts": "p = torch.nn.Parameter(torch.ones(1))\n"
                                    "torch.optim.Adam([p]).step()\nimport torch._dynamo",
    "a display": "from IPython.display import display, HTML\ndisplay(HTML('<b>x</b>'))\n42.0",
    "an assert of its own": "class Expect:\n    pass\nassert Expect()",
    "async": "import asyncio\nawait asyncio.sleep(0.01)",
}


def honest(student_version, code):
    return filled(student_version, RIGHT | {"double": RIGHT["double"] + "\n" + code})


def all_cases(student_version) -> dict:
    """Name -> (notebook, the four marks it deserves), for attacks on marks and honest ones."""
    cases = {name: (attack(student_version, code), (0, 0, 0, 0))
             for name, code in FULL_MARKS.items()}
    for name, code in (WHILE_A_TEST_RUNS | SHARED).items():
        # `square` stands in the attack, and its own cell is left empty.
        cases[name] = (filled(student_version, WRONG | {
            "double": f"# Task 1: double\n{code}", "square": "# Task 2: square"}), (0, 0, 0, 0))
    return cases | {name: (honest(student_version, code), FULL) for name, code in HONEST.items()}
