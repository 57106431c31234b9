"""The exercises in the page: its small tensor library judges as PyTorch does.

Every answer that the tests hold of the chapters in question is judged by the same code on both, in
a process each; the verdict and the sentence must be the same.
"""

import ast
import importlib.util
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from turns import one_in

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "exercises" / "page" / "lib"

_spec = importlib.util.spec_from_file_location("run_here", ROOT / "book" / "_ext" / "run_here.py")
run_here = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(run_here)

ELSEWHERE = {"inside-an-update"}  # its one exercise measures a real update
OWN = {"your-transformer", "descendants"}  # whose parts are written and handed in in one cell
PAGES = [page for page in run_here.PAGES if page not in ELSEWHERE]


def module_of(page):
    """The module of a page's checks."""
    named = re.match(r"\d+\w?_(.*)", page)
    return named[1] if named else {"your-transformer": "own"}.get(page, page.replace("-", "_"))


CHAPTERS = {module_of(page): run_here.PAGES[page] for page in PAGES}
MOST = 0.97  # of the verdicts, and of the sentences, must agree for a chapter to be in the page
QUICK = ["--table", "--test", "--unseen", "--solution"]
EVERY = "--every=4"


def page_python(code):
    """What a program prints that imports the page's library under PyTorch's name."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=200,
        env=os.environ | {"PYTHONPATH": f"{LIBRARY}{os.pathsep}{ROOT}"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def judged(program, name, left_out, *options):
    """{(kind or task, what was answered): what page_answers.py or page_labs.py says of it}"""
    done = subprocess.run(
        [sys.executable, "-m", f"tests.book.{program}", *options,
         *(f"--without={one}" for one in left_out), name],
        capture_output=True, text=True, cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    rows = map(json.loads, done.stdout.splitlines())
    return {(where, what): found for _, where, what, *found, _ in rows}


def on_both(program, name, left_out, *options):
    """What it says with PyTorch, and with the page's own library."""
    with ThreadPoolExecutor() as pool:
        right, page = pool.map(lambda more: judged(program, name, left_out, *options, *more),
                               ([], ["--page"]))
    assert right.keys() == page.keys()
    return right, page


def sentences(message):
    return [line for line in message.splitlines() if line[:1] in "✓✗○"]


def compare(chapter, options):
    """(number of answers, [those whose verdict differs], [those whose sentence differs])"""
    left_out = [f"{chapter}.{number}" for number in CHAPTERS[chapter]]
    right, page = on_both("page_answers", chapter, left_out, *options)
    assert len(right) > (3 if EVERY in options else 15)
    verdicts = [str(what) for what, (verdict, _) in right.items() if page[what][0] != verdict]
    said = [f"{what}:\n {sentences(message)}\n {sentences(page[what][1])}"
            for what, (_, message) in right.items()
            if sentences(page[what][1]) != sentences(message)]
    print(f"{chapter}: {len(right)} answers, {len(verdicts)} verdicts and {len(said)} sentences "
          "differ")
    return len(right), verdicts, said


@pytest.mark.parametrize("chapter", one_in(4, CHAPTERS))
def test_every_fourth_answer_is_judged_as_on_pytorch(chapter):
    """Always the same ones, of every fourth chapter; the rest is weekly.

    One may differ, as one of forty does there.
    """
    total, verdicts, said = compare(chapter, [*QUICK, EVERY])
    assert len(verdicts) <= max(1, (1 - MOST) * total), "\n".join(verdicts)
    assert len(said) <= max(1, (1 - MOST) * total), "\n".join(said)


@pytest.mark.weekly
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_answer_is_judged_as_on_pytorch(chapter):
    total, verdicts, said = compare(chapter, QUICK)
    assert not verdicts or len(verdicts) <= (1 - MOST) * total, "\n".join(verdicts)
    assert len(said) <= (1 - MOST) * total, "\n".join(said)


@pytest.mark.weekly  # the broken solutions as well, hundreds of them
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_broken_solution_is_judged_as_on_pytorch(chapter):
    total, verdicts, said = compare(chapter, [])
    assert len(verdicts) <= (1 - MOST) * total, "\n".join(verdicts)
    assert len(said) <= (1 - MOST) * total, "\n".join(said)


def test_random_numbers_are_those_of_pytorch():
    import torch

    code = (
        "import json, torch\n"
        "torch.manual_seed(3)\n"
        "made = [torch.randn(n).tolist() for n in (1, 5, 16, 17, 40)]\n"
        "made += [torch.rand(3, 2).tolist(), torch.randint(5, 12, (9,)).tolist()]\n"
        "made += [torch.randperm(8).tolist(), torch.randn(20, dtype=torch.float64).tolist()]\n"
    )
    theirs = json.loads(page_python(code + "print(json.dumps(made))"))
    names = {}
    with torch.random.fork_rng(devices=[]):
        exec(code, names)
    for ours, there in zip(names["made"], theirs, strict=True):
        assert torch.allclose(torch.tensor(ours), torch.tensor(there), atol=2e-6)


def test_equal_numbers_come_out_of_topk_in_pytorchs_order():
    code = """
import json, random, torch
draw, found = random.Random(1), []
for n in (1, 2, 3, 5, 8, 13, 16, 30):
    for k in {1, 2, n // 2, min(n, 16)} - {0} if n > 1 else {1}:
        for largest in (True, False):
            rows = torch.tensor([[float(draw.randint(0, 3)) for _ in range(n)] for _ in range(9)])
            found.append(rows.topk(k, largest=largest)[1].tolist())
            found.append(rows.mT.topk(k, dim=0, largest=largest)[1].tolist())
"""
    names = {}
    exec(code, names)
    assert json.loads(page_python(code + "print(json.dumps(found))")) == names["found"]


def test_a_model_of_the_library_decodes_greedily_in_the_page_as_on_pytorch():
    """Lab 5 does, and what looks at a model's weights first may use nothing that the page lacks."""
    code = """
import json, torch
from transformer_lib.config import ModelConfig
from transformer_lib.decoding import greedy_decode
from transformer_lib.models.transformer import Transformer
torch.manual_seed(0)
model = Transformer(ModelConfig(vocab_size=9, d_model=8, n_heads=2, d_ff=8, n_encoder_layers=1,
                                n_decoder_layers=1, dropout=0.0, max_len=12)).eval()
found = greedy_decode(model, torch.tensor([[4, 5, 3], [6, 3, 0]]), 5).tolist()
"""
    names = {}
    exec(code, names)
    told = "from exercises.page.runner import MISSED\nprint(json.dumps([found, sorted(MISSED)]))"
    assert json.loads(page_python(code + told)) == [names["found"], []]


def test_some_functions_that_answers_use_seldom_give_what_pytorch_and_numpy_do():
    code = """
import json, numpy as np, torch
from torch.nn.utils.rnn import pad_sequence
turn = torch.tensor([[[0.0, -1.5], [1.5, 0.0]], [[3.0, 1.0], [2.0, -4.0]]], requires_grad=True)
found = torch.linalg.matrix_exp(turn)
found.sum().backward()
made = [found.tolist(), turn.grad.tolist()]
rows = [torch.arange(6.0).reshape(3, 2), torch.ones(1, 2)]
made += [pad_sequence(rows).tolist(), pad_sequence(rows, True, 7.0).tolist()]
made += [np.float64(2) / 3, np.int64(3) + 1, bool(np.zeros(2, np.float32).dtype == np.float32)]
order = np.argsort(-np.array([[0.2, 0.5, 0.3]]), axis=-1)
back = np.zeros((1, 3))
np.put_along_axis(back, order, np.array([[1.0, 2.0, 3.0]]), -1)
made += [np.take_along_axis(np.array([[0.2, 0.5, 0.3]]), order, -1).tolist(), back.tolist()]
"""
    names = {}
    exec(code, names)

    def flat(value):
        return [x for part in value for x in flat(part)] if isinstance(value, list) else [value]

    theirs = json.loads(page_python(code + "print(json.dumps(made))"))
    assert flat(theirs) == pytest.approx(flat(names["made"]), rel=1e-6, abs=1e-6)


def test_numpys_arrays_of_strings_are_lacking_and_give_no_verdict():
    check = "checks.multi30k_data.coverage(covered);"
    answer = "import numpy as np\n\ndef covered(a, b, n):\n    return np.array(a)\n"
    assert run_in_page((answer, check))[0]["lacks"] == ["an array of strings"]


def test_a_name_that_the_page_lacks_says_so():
    """Of whatever PyTorch has, the page has it, or says that it has not."""
    # Asked of a fresh process: other tests add names of their own to PyTorch.
    names = json.loads(subprocess.check_output([sys.executable, "-c", """
import json, torch
theirs = {"Tensor": torch.Tensor, "torch": torch, "torch.nn": torch.nn,
          "torch.nn.functional": torch.nn.functional}
print(json.dumps({key: [n for n in dir(value) if n[0] != "_"] for key, value in theirs.items()}))
"""], text=True))
    silent = json.loads(page_python(f"""
import json, torch
import torch.nn.functional as F
from torch._tensor import Missing
held = {{"Tensor": torch.zeros(2, 2), "torch": torch, "torch.nn": torch.nn,
        "torch.nn.functional": F}}
silent = []
for where, names in json.loads({json.dumps(json.dumps(names))}).items():
    for name in names:
        try:
            getattr(held[where], name)
        except Missing as error:
            assert "Colab" in str(error)
        except AttributeError:
            silent.append(f"{{where}}.{{name}}")
        except Exception:
            pass
print(json.dumps(silent))
"""))
    assert silent == []


def run_in_page(*runs):
    """What the page's runner answers to pairs of cells, one after the other."""
    return json.loads(page_python(
        "import json\nfrom exercises.page import runner\n"
        f"runs = json.loads({json.dumps(json.dumps(runs))})\n"
        "print(json.dumps([json.loads(runner.run(*cells)) for cells in runs]))"
    ))


def cells_by_exercise(path):
    """{number or part: the code cells that belong to it}"""
    found, number = {}, None
    for cell in json.loads(path.read_text(encoding="utf8"))["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            number = (re.findall(r"Exercise (\d+)", text) or [number])[-1]
        elif path.stem in OWN:
            if part := re.search(r'own\.hand_in\("(\w+)"', text):
                found[part[1]] = [text]
        elif number:
            found.setdefault(number, []).append(text)
    return found


def judging(text):
    """The last call of a check in a cell, or None."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)
             and re.match(r"checks\.\w+\.\w+$|own\.hand_in$", ast.unparse(node.func))]
    return calls[-1] if calls else None


def typed(page):
    """{exercise or part: (the answer of the page of solutions, the cell with its check)}"""
    chapter = cells_by_exercise(ROOT / "book" / f"{page}.ipynb")
    solutions = cells_by_exercise(ROOT / "book" / "solutions" / f"{page}.ipynb")
    found = {}
    for number, cells in chapter.items():
        check = cells[:2][-1]
        if asked := judging(check):
            solution = "\n".join(solutions[number])
            given = judging(solution)
            answer = "\n".join(solution.splitlines()[: given.lineno - 1])
            for name, value in zip(asked.args, given.args, strict=True):
                if isinstance(name, ast.Name):
                    answer += f"\n{name.id} = {ast.unparse(value)}"
            if page in OWN:
                answer = f"EPSILON = 1e-5  # of the page of solutions\n{answer}"
            found[number] = answer, check[check.index(ast.unparse(asked.func)) :]
    return found


@pytest.mark.parametrize("page", one_in(2, PAGES))
def test_each_solution_is_right_when_it_is_typed_into_the_page(page):
    answers = {number: cells for number, cells in typed(page).items()
               if number not in map(str, run_here.PAGES[page])}
    assert answers
    given = run_in_page(*[(*cells, run_here.imports(page)) for cells in answers.values()])
    wrong = {number: one for number, one in zip(answers, given, strict=True)
             if one["verdict"] is not True}
    assert not wrong


def test_a_right_answer_is_there_for_the_next_exercise_and_is_no_answer_any_more_once_deleted():
    check = "from exercises import checks\n\nchecks.masks.window_mask(window_mask);"
    right = """def window_mask(size, window):
    return torch.ones(1, 1, size, size, dtype=torch.bool).tril().triu(1 - window)
"""
    given = run_in_page(
        (right, check), ("", check), ("print(window_mask(2, 1)[0, 0])", "None"),
        (right.replace("1 - window", "-window"), check), ("print(window_mask(2, 1)[0, 0])", "None"),
    )
    assert [one["verdict"] for one in given] == [True, None, None, False, None]
    assert "NameError" in given[1]["text"] and "True" in given[2]["text"]
    assert given[4]["text"] == given[2]["text"]  # that of the right answer


def test_the_runner_answers_like_a_notebook():
    check = "from exercises import checks\n\nchecks.masks.window_mask(window_mask);"
    right = """def window_mask(size, window):
    print("hello")
    place = torch.arange(size)
    distance = place[:, None] - place
    return ((distance >= 0) & (distance < window))[None, None]
"""
    given = run_in_page(
        (right, check),
        (right.replace("< window", "<= window"), check),
        ("def window_mask(size, window):\n    return ...\n", check),
        ("def window_mask(size, window)\n    return 1\n", check),
        ("window_mask = 1 / 0\n", check),
        ("def window_mask(size, window):\n    return torch.fft.fft(torch.zeros(1))\n", check),
        ("print('bye')\nraise SystemExit(3)\n", check),
    )
    assert [one["verdict"] for one in given] == [True, False, *[None] * 5]
    assert given[0]["text"] == "hello\n✓ Exercise 4. Right.\n"
    assert "window + 1 tokens" in given[1]["text"]
    assert given[2]["text"].startswith("○ Exercise 4. Not attempted yet")
    assert given[3]["text"].startswith("SyntaxError") and "line 1" in given[3]["text"]
    assert given[4]["text"].startswith("ZeroDivisionError") and "line 1" in given[4]["text"]
    assert given[5] == {"text": "", "verdict": None, "lacks": ["torch.fft"]}
    assert given[6]["text"].startswith("bye\nSystemExit: 3 (line 2)")


@pytest.mark.parametrize("how", [
    "x.reshape(2, len(x) / 2, 4)", "x.view(2, len(x) / 2, 4)", "x.unflatten(0, (2, len(x) / 2))",
    "torch.zeros(len(x) / 2)", "x.split(len(x) / 2)", "x.chunk(len(x) / 2)",
])
def test_a_size_that_is_a_fraction_gets_the_same_sentence_on_both(how):
    code = ("import torch\nfrom exercises.checks.framework import stopped\nx = torch.zeros(4, 4)\n"
            f"try:\n    {how}\nexcept Exception as error:\n    said = stopped(error)\n")
    names = {}
    exec(code, names)
    assert "divide with //" in names["said"]
    assert page_python(code + "print(said)").strip() == names["said"]


def test_a_first_guess_is_remembered_between_runs():
    check = "checks.masks.combined(shape, true_values);"
    first, second = run_in_page(
        ("shape = (2, 1, 6, 6)\ntrue_values = 21", check),
        ("shape = (2, 1, 6, 6)\ntrue_values = 18", check),
    )
    assert first["verdict"] is False and "Your first guess was" in second["text"]


def test_a_page_says_in_text_what_its_script_needs():
    import types

    given = {}
    app = types.SimpleNamespace(
        builder=types.SimpleNamespace(name="html"), add_css_file=lambda name: None,
        add_js_file=lambda name, **attributes: given.update(attributes))
    run_here.add_assets(app, "book/12_batches_loss_schedule", "page.html", {}, object())
    assert given["data-without"] == "9" and given["data-megabytes"] == "7"
    assert "from transformer_lib import batching" in given["data-imports"].splitlines()
    assert all(isinstance(value, str) for value in given.values())  # the theme escapes text alone


def test_the_zip_is_the_same_for_the_same_files_and_holds_what_is_imported():
    import io
    import zipfile

    made = run_here.packed()
    assert made == run_here.packed()
    assert len(made) < 500_000
    names = set(zipfile.ZipFile(io.BytesIO(made)).namelist())
    assert {"exercises/page/runner.py", "exercises/page/lib/torch/__init__.py",
            "exercises/page/lib/numpy/__init__.py", "exercises/checks/masks.py",
            "transformer_lib/masks.py"} <= names
    loaded = page_python(
        "import sys\nfrom exercises.page import runner\nfrom exercises import checks\n"
        + "".join(f"import exercises.checks.{chapter}\n" for chapter in CHAPTERS)
        + "print(*[m.__file__ for m in sys.modules.values() if getattr(m, '__file__', None)])"
    ).split()
    mine = {Path(path).relative_to(ROOT).as_posix() for path in loaded
            if path.startswith(str(ROOT)) and ".venv" not in path}
    assert mine <= names


def test_everything_vendored_brings_its_licence():
    vendor = ROOT / "book" / "_extra" / "vendor"
    table = (vendor.parent / "README.md").read_text(encoding="utf8").lower()
    for folder in vendor.iterdir():
        texts = [path.read_text(encoding="utf8") for path in folder.glob("LICENSE*")]
        assert texts and all(len(text) > 900 for text in texts), folder.name
        assert folder.name in table or folder.name == "fonts", folder.name
    held = {name: " ".join(path.read_text(encoding="utf8") for path in (vendor / name).glob("LIC*"))
            for name in ("pyodide", "codemirror")}
    assert "Mozilla Public License" in held["pyodide"]
    assert "PYTHON SOFTWARE FOUNDATION LICENSE" in held["pyodide"]
    assert "Permission is hereby granted, free of charge" in held["codemirror"]


def test_each_part_of_the_runtime_is_listed_with_its_trace_and_the_text_of_its_licence():
    """After a change of version some trace is gone, and the table has to be looked at again."""
    folder = ROOT / "book" / "_extra" / "vendor" / "pyodide"
    rows = [re.split(r" \| ", line.strip("| "))
            for line in (folder / "PARTS.md").read_text(encoding="utf8").splitlines()
            if line.startswith("| ")][1:]
    assert {row[3].strip("`") for row in rows} == {path.name for path in folder.glob("LICENSE*")}
    missing = [(part, trace) for part, _, _, _, trace, file in rows
               if trace.strip("`").encode() not in (folder / file).read_bytes()]
    assert not missing
    package = (ROOT / "tools" / "vendor.sh").read_text(encoding="utf8")
    assert f"pyodide@{rows[0][1]} " in package
    # What an own licence would be needed for, were it in.
    binary = (folder / "pyodide.asm.wasm").read_bytes()
    assert not [name for name in (b"OpenSSL", b"SSL_CTX", b"mi_malloc", b"ncurses", b"numpy.core")
                if name in binary]
