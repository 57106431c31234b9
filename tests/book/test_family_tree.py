"""The family tree: what its data file must hold, and the figure in headless Chromium."""

# ruff: noqa: E501  (scripts of the page read better in one line)

import json
import re
from pathlib import Path

import cell_anchors
import family_tree
import pytest
import reading_order

ROOT = Path(__file__).resolve().parents[2]

DATA = family_tree.family()
MODELS = {model["name"]: model for model in DATA["models"]}
PAGES = reading_order.pages()
KEYS = [
    "name", "year", "authors", "branch", "varies", "parent", "changed", "parameters", "data",
    "source", "page", "anchor",
]
# What the chapters of this part build or name.
NAMED = """
Transformer
BERT, RoBERTa, ALBERT, ELECTRA, DistilBERT, XLM, XLM-R, DeBERTa
GPT, GPT-2, GPT-3, GPT-Neo, GPT-J, CTRL, Llama, Multi-query attention, Grouped-query attention
RMSNorm, SwiGLU
ViT, DeiT, ViT with a stem
T5, T5's relative bias, BART, mBART, mT5, M2M-100
Sparse Transformer, BlockBERT, ETC, Longformer, BigBird, Reformer, Routing Transformer, Linformer,
RFA, Performer, Linear Transformer, FlashAttention
Transformer-XL, Compressive Transformer, kNN-LM, SPALM, Memorizing Transformer, DA-Transformer,
ALiBi, RoFormer, Universal Transformer, Adaptive Span, Depth-Adaptive Transformer, CALM
GTrXL, Decision Transformer
InstructGPT, DPO, GRPO, D3PM, SEDD, MDLM, LLaDA
"""

# ---- the data -----------------------------------------------------------------------------------


def test_every_model_that_the_chapters_name_is_there():
    named = {name.strip() for name in re.split(r"[,\n]", NAMED) if name.strip()}
    assert named <= set(MODELS), f"missing: {sorted(named - set(MODELS))}"
    assert len(MODELS) == len(DATA["models"]), "two models have one name"


@pytest.mark.parametrize("model", DATA["models"], ids=lambda model: model["name"])
def test_a_row_is_complete(model):
    assert list(model) == KEYS
    size_is_its_own = model["varies"] not in ("module", "architecture")
    for key in KEYS:
        if key == "parent" and model["name"] == "Transformer":
            assert model[key] is None
        elif key != "parameters" or size_is_its_own:
            assert model[key], f"{key} is empty"
    assert model["branch"] in DATA["branches"] and model["varies"] in DATA["varies"]
    assert model["changed"].endswith(".") and len(model["changed"]) < 200
    assert all(isinstance(model[key], str) for key in KEYS if key != "year" and model[key])


@pytest.mark.parametrize("model", DATA["models"], ids=lambda model: model["name"])
def test_a_source_is_well_formed_and_has_the_year(model):
    source, year = model["source"], model["year"]
    number = re.fullmatch(r"arXiv:(\d\d)(0[1-9]|1[0-2])\.\d{4,5}", source)
    assert number or re.fullmatch(r"https://[\w.-]+\.\w+/\S+", source), source
    if number:
        assert year == 2000 + int(number[1]), "the year is that of the first version"
    assert 2017 <= year <= 2026


@pytest.mark.parametrize("model", DATA["models"], ids=lambda model: model["name"])
def test_parents_exist_are_not_younger_and_lead_to_the_root(model):
    seen = [model["name"]]
    while model["parent"]:
        parent = MODELS.get(model["parent"])
        assert parent, f"{model['name']} comes from {model['parent']}, which has no row"
        assert parent["year"] <= model["year"], f"{parent['name']} is younger than its child"
        assert parent["name"] not in seen, f"a circle: {seen}"
        seen.append(parent["name"])
        model = parent
    assert model["name"] == "Transformer"


@pytest.mark.parametrize("model", DATA["models"], ids=lambda model: model["name"])
def test_a_change_to_a_named_model_is_a_change_to_the_parent(model):
    """ "mT5 on bytes" comes from mT5, "BART's denoising in 25 languages" from BART."""
    first = re.split(r"'s |\s", model["changed"])[0]
    assert first not in MODELS or first == model["parent"]


def test_models_stand_in_the_order_of_their_sources():
    """So that the table, the tree and the list show one order within a year."""
    years = [model["year"] for model in DATA["models"]]
    assert years == sorted(years)
    numbers = [model["source"] for model in DATA["models"] if model["source"].startswith("arXiv")]
    assert numbers == sorted(numbers)


@pytest.mark.parametrize("model", DATA["models"], ids=lambda model: model["name"])
def test_the_link_leads_to_a_cell_or_a_heading(model):
    if f"book/{model['page']}" not in PAGES:
        pytest.skip(f"{model['page']} is not in _toc.yml")
    there = cell_anchors.anchors(model["page"])
    near = sorted(anchor for anchor in there if anchor.startswith(model["anchor"][:6]))
    assert model["anchor"] in there, f"#{model['anchor']} is not in {model['page']}: {near}"


def test_only_pages_that_are_built_get_a_link():
    model = MODELS["BERT"]
    there = f"{model['page']}.html#{model['anchor']}"
    assert family_tree.lines_of(model, [f"book/{model['page']}"]) == there
    assert family_tree.lines_of(model, ["book/01_why_attention"]) == ""
    assert f'data-pages="{model["page"]}"' in family_tree.figure({"models": [model]}, PAGES)
    assert 'data-pages=""' in family_tree.figure({"models": [model]}, [])


def test_a_library_cell_has_an_anchor():
    """The same anchor in the built page and in the list that the tests compare with."""
    from docutils import nodes

    document = nodes.document(None, None)
    tags = {"tags": ["hide-input", "lib:models.language_model.LanguageModel"]}
    document += nodes.container(nb_element="cell_code", cell_metadata=tags)
    cell_anchors.add_anchors(None, document)
    assert document[0]["ids"] == ["lib-models-language-model-languagemodel"]
    assert document[0]["ids"][0] in cell_anchors.anchors("20_decoder_only")


def test_a_folded_library_cell_names_its_definition():
    from docutils import nodes

    document = nodes.document(None, None)
    said = {"hide_mode": "input", "prompt_show": "Show code", "prompt_hide": "Hide code"}
    for tags in (["hide-input", "lib:training.fit"], ["hide-input"]):
        metadata = {"tags": tags}
        document += nodes.container(nb_element="cell_code", cell_metadata=metadata, **said)
    cell_anchors.add_anchors(None, document)
    assert [cell["prompt_show"] for cell in document] == ["Show training.fit", "Show code"]
    assert document[0]["prompt_hide"] == "Hide training.fit"


def test_folded_library_cells_in_a_row_share_one_line():
    """Their anchors stand on that line, and what stands between two cells keeps them apart."""
    from docutils import nodes

    def cell(name, **more):
        metadata = {"tags": ["hide-input", f"lib:beyond.sparse.{name}"]}
        said = {"hide_mode": "input", "prompt_show": "Show code", "prompt_hide": "Hide code"}
        return nodes.container(nb_element="cell_code", cell_metadata=metadata, **said | more)

    document = nodes.document(None, None)
    document += [cell("local"), cell("causal"), nodes.paragraph(text="And"), cell("strided"),
                 cell("dilated", hide_mode=None)]
    cell_anchors.add_anchors(None, document)
    group, _, alone, shown = document.children
    (fold,) = group.children
    assert fold["prompt_show"] == "Show beyond.sparse: local, causal"
    assert [one["hide_mode"] for one in fold.children] == [None, None]
    assert group["ids"] == ["lib-beyond-sparse-local", "lib-beyond-sparse-causal"]
    assert not any(one["ids"] for one in fold.children)
    assert alone["prompt_show"] == "Show beyond.sparse.strided"
    assert shown["ids"] == ["lib-beyond-sparse-dilated"]


@pytest.mark.parametrize(("names", "line"), [
    (["a.b.c", "a.b.d"], "a.b: c, d"),
    (["a.b.c", "a.d"], "a.b.c, a.d"),
    (["a.b", "a.c", "a.d", "a.e"], "a: b, c, d, e"),
    (["a.b", "a.c", "a.d", "a.e", "a.f"], "a: b, c, d and 2 more"),
])
def test_the_line_of_a_group_names_four_at_most(names, line):
    assert cell_anchors.names_of(names) == line


FOLDED_LINES = 12  # grey lines of a page, at most: folded library code and folded tables


@pytest.mark.parametrize("page", [page for page in PAGES if (ROOT / f"{page}.ipynb").exists()])
def test_a_page_has_few_folded_lines(page):
    cells = json.loads((ROOT / f"{page}.ipynb").read_text(encoding="utf8"))["cells"]
    lines, library_above = 0, False
    for cell in cells:
        tags = set(cell["metadata"].get("tags", ()))
        if "remove-cell" in tags:
            continue
        library = "hide-input" in tags and bool(cell_anchors.library_tags(cell["metadata"]))
        lines += (library and not library_above) or "hide-cell" in tags
        library_above = library
    assert lines <= FOLDED_LINES, f"{lines} folded lines: let cells with nothing between them share one"
