"""The map of the paper: every tag names a part, every part has what it needs."""

import json
import re
from pathlib import Path

import paper_map
import pytest
from sphinx.errors import ExtensionError

ROOT = Path(__file__).resolve().parents[2]


PARTS = paper_map.collect()


def test_sections_3_to_6_are_there_with_every_equation_table_and_figure():
    ids = [part.id for part in PARTS]
    sections = ["3", "3.1", "3.2", "3.2.1", "3.2.2", "3.2.3", "3.3", "3.4", "3.5", "4"]
    sections += ["5.1", "5.2", "5.3", "5.4", "6.1", "6.2", "6.3"]
    assert [i for i in ids if i[0].isdigit()] == sections  # in the paper's order
    assert {"eq1", "eq2", "eq3", "residual", "multihead", "pe"} <= set(ids)
    assert {"table1", "table2", "table3", "table4"} <= set(ids)
    assert {"figure1", "figure2", "figures3-5"} <= set(ids) and len(set(ids)) == len(ids)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.id)
def test_links_lead_to_headings_that_exist(part):
    for links in (part.links[role] for role in ("explained", "shown", "measured", "later")):
        for link in links:
            file, anchor = re.search(r"\]\(([^)#]+)#?([^)]*)\)", link).groups()
            cells = json.loads((ROOT / "book" / file).read_text(encoding="utf8"))["cells"]
            found = [
                paper_map.slug(heading)
                for cell in cells
                if cell["cell_type"] == "markdown"
                for heading in paper_map.headings("".join(cell["source"]))
            ]
            # A second heading of the same words would take the anchor's readers astray.
            assert not anchor or found.count(anchor) == 1, link


def test_each_part_of_the_model_says_what_became_of_it():
    later = {part.id for part in PARTS if part.links["later"]}
    assert {"3", "3.1", "3.2.2", "3.2.3", "3.3", "3.4", "3.5", "5.1"} <= later


@pytest.mark.parametrize(("part", "role", "words"), [
    ("3.1", "explained", "what-does-each-position-predict"),  # the target moved by one
    ("3.1", "tested", "one place ahead"),
    ("3.2.3", "implemented", "masks.padding_mask"),
    ("3.2.3", "implemented", "masks.causal_mask"),
    ("3.4", "tested", "tied embeddings are one matrix"),
    ("3.5", "measured", "beyond-the-training-length"),  # "may allow the model to extrapolate"
    ("5.4", "measured", "which-choices-paid-off"),
    ("table3", "measured", "04_multi_head_attention"),
    ("table3", "measured", "scaling"),
    ("table3", "measured", "replication"),
])
def test_these_sentences_of_the_paper_lead_somewhere(part, role, words):
    links = next(one.links[role] for one in PARTS if one.id == part)
    assert any(words in link for link in links)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.id)
def test_lines_are_the_lines(part):
    for link in part.links["implemented"]:
        path, line = re.search(r"\((\S+), line (\d+)\)", link).groups()
        name = re.search(r"`([\w.]+)", link)[1].rpartition(".")[2]
        assert name in (ROOT / path).read_text(encoding="utf8").splitlines()[int(line) - 1]


def cell(kind, source, *tags):
    return {"cell_type": kind, "metadata": {"tags": list(tags)}, "source": source}


def of(cells, **parts):
    parts = parts or {"eq1": paper_map.Part("eq1", "equation", "Equation 1", "")}
    paper_map.of_cells(parts, "book/03_masks", cells, ROOT)
    return parts["eq1"].links


def test_a_cell_is_filed_by_what_it_is():
    links = of([
        cell("markdown", "# Masks"),
        cell("markdown", "So far.\n\n## One\n\ntext", "paper:eq1"),
        cell("code", "1 + 1", "paper:eq1"),
        cell("code", "...", "lib:masks.causal_mask", "paper:eq1"),
        cell("markdown", "### Two", "paper-measured:eq1"),
        cell("markdown", "### Three", "paper-later:eq1"),
    ])
    assert links["explained"] == links["shown"] == ["[One](03_masks.ipynb#one) in *Masks*"]
    assert links["implemented"][0].startswith("{py:obj}`masks.causal_mask <")
    assert links["measured"] == ["[Two](03_masks.ipynb#two) in *Masks*"]
    assert links["later"] == ["[Three](03_masks.ipynb#three) in *Masks*"]


def test_a_tag_that_names_nothing_stops_the_build():
    with pytest.raises(ExtensionError, match="eq9 names no part"):
        of([cell("markdown", "## One", "paper:eq9")])


def test_a_mark_that_names_nothing_stops_the_build(tmp_path):
    path = tmp_path / "test_x.py"
    path.write_text('@pytest.mark.paper("eq9")\ndef test_y():\n    pass\n', encoding="utf8")
    with pytest.raises(ExtensionError, match="'eq9' of test_y names no part"):
        paper_map.of_tests({}, path)


def test_a_part_left_bare_stops_the_build(monkeypatch):
    monkeypatch.setattr(paper_map, "of_tests", lambda parts, path: None)
    with pytest.raises(ExtensionError, match="residual.*nothing is tagged as .'tested'"):
        paper_map.collect()
