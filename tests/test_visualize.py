"""Figures: they show the numbers they were given, say so in words, and fail with a clear reason."""

import html
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from IPython.display import HTML

from transformer_lib import visualize
from transformer_lib.visualize import bertviz_views, curves, diagrams

QUERIES, KEYS = ["Ein", "Mann", "Ein", "."], ["A", "man", "a", "man", "."]


def attention(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.softmax(2 * torch.randn(*shape, generator=generator), -1)


def rows_of(chart):
    """The records that a chart draws, from the JSON that the browser gets."""
    (rows,) = chart.to_dict()["datasets"].values()
    return rows


def params_of(chart):
    return {param["name"]: param for param in chart.to_dict()["params"]}


def text_alternative(figure):
    return html.unescape(re.search(r'aria-label="([^"]*)"', figure.data)[1])


# ------------------------------------------------------------------------------------------ theme


def test_figure_libraries_are_imported_late():
    code = (
        "import sys, transformer_lib.visualize as v; v.ROLE_COLOURS;"
        "late = {'altair', 'matplotlib', 'bertviz', 'IPython'} & set(sys.modules);"
        "assert not late, late"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_each_role_has_a_colour_of_its_own():
    roles = {"query", "key", "value", "memory", "target", "masked", "loss"}
    assert set(visualize.ROLE_COLOURS) == roles
    assert len(set(visualize.ROLE_COLOURS.values())) == len(roles)
    assert sorted(visualize.SERIES_COLOURS) == sorted(visualize.ROLE_COLOURS.values())


def lightness(colour):
    """Relative luminance of "#rrggbb" (WCAG 2), 0 to 1."""
    parts = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


def test_more_is_always_darker():
    steps = [lightness(colour) for colour in visualize.SEQUENTIAL]
    assert steps == sorted(steps, reverse=True) and steps[0] > 0.85 and steps[-1] < 0.05


ROOT = Path(visualize.__file__).resolve().parents[2]
OWN_COLOUR = re.compile(r"""["'(:;\s]\#[0-9a-fA-F]{3,8}\b|viridis|tab10""")
OWN_SCALE = re.compile(r"""\b(?:cmap|scheme)=["']""")


def test_no_chart_and_no_module_has_a_colour_of_its_own():
    """All colours come from theme.py, by the name of their role or scale."""
    found = []
    for path in sorted(ROOT.glob("transformer_lib/**/*.py")):
        if path.name != "theme.py":
            text = path.read_text("utf-8")
            used = OWN_COLOUR.findall(text) + OWN_SCALE.findall(text)
            found += [(path.name, one) for one in used]
    for path in sorted((ROOT / "book").glob("**/*.ipynb")):
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                text = "".join(cell["source"])
                strings = re.findall(r"""["'].*["']""", text)
                used = [one for line in strings for one in OWN_COLOUR.findall(line)]
                found += [(path.name, one) for one in used + OWN_SCALE.findall(text)]
    assert not found


def test_the_page_and_its_live_figures_use_the_palette_of_the_charts():
    from tools import palette

    assert palette.CSS.read_text("utf-8") == palette.css(), "run: python -m tools.palette"
    assert set(visualize.DARK_COLOURS) == set(visualize.ROLE_COLOURS)
    roles = {colour.lower() for colour in visualize.ROLE_COLOURS.values()}
    static = ROOT / "book" / "_static"
    for path in [*static.glob("*.css"), *static.glob("live/*.css"), *static.glob("live/*.js")]:
        if path != palette.CSS:
            text = path.read_text("utf-8").lower()
            used = set(re.findall(r"#[0-9a-f]{6}\b", text))
            assert not used & roles, (path.name, used & roles)


def test_one_scale_for_more_and_less_in_every_figure():
    import matplotlib

    visualize.use_theme()
    config = visualize.attention_heatmap(attention(4, 5), QUERIES, KEYS).to_dict()["config"]
    assert config["range"]["heatmap"] == config["range"]["ramp"] == visualize.SEQUENTIAL
    drawn = matplotlib.colormaps[matplotlib.rcParams["image.cmap"]]
    ends = [matplotlib.colors.to_hex(drawn(value)) for value in (0.0, 1.0)]
    assert ends == [visualize.SEQUENTIAL[0], visualize.SEQUENTIAL[-1]]


def test_numbers_in_a_heatmap_can_be_read_on_their_cells():
    """At least 4.5 to 1 for every weight, on the colour between the steps of the scale."""
    chart = visualize.attention_heatmap(attention(2, 3), ["q", "r"], ["a", "b", "c"]).to_dict()
    ink = chart["layer"][1]["encoding"]["color"]
    limit = float(ink["condition"]["test"].removeprefix("datum.weight > "))
    import matplotlib

    scale = matplotlib.colormaps["transformer_lib"]
    for weight in np.linspace(0, 1, 101):
        paper = lightness(matplotlib.colors.to_hex(scale(weight)))
        name = ink["condition"]["value"] if weight > limit else ink["value"]
        text = {"white": 1.0, "black": 0.0}[name]
        contrast = (max(paper, text) + 0.05) / (min(paper, text) + 0.05)
        assert contrast >= 4.5, (weight, contrast)


def test_the_theme_leaves_the_colour_of_text_to_the_page():
    chart = visualize.attention_heatmap(attention(4, 5), QUERIES, KEYS).to_dict()
    config = chart["config"]
    assert config["background"] == "transparent"
    colours = {
        value
        for part in config.values()
        if isinstance(part, dict)
        for key, value in part.items()
        if key.endswith(("Color", "color"))
    }
    assert colours == {"currentColor"}


def test_charts_have_no_menu_and_are_drawn_as_svg():
    import altair as alt

    visualize.use_theme()
    page = visualize.attention_heatmap(attention(4, 5), QUERIES, KEYS)._repr_mimebundle_()
    page = page[0] if isinstance(page, tuple) else page
    assert alt.theme.active == "transformer_lib"
    assert '"actions": false' in page["text/html"]
    assert '"renderer": "svg"' in page["text/html"]


# ----------------------------------------------------------------------------------------- matrix


def cells(figure):
    return re.findall(r"<td style[^>]*>([^<]*)</td>", figure.data)


def test_matrix_shows_every_number_and_the_shape():
    figure = visualize.matrix(torch.tensor([[1.0, -2.5], [0.001, 3.0]]), ["a", "b"], ["x", "<y>"])
    assert isinstance(figure, HTML)
    assert cells(figure) == ["1.00", "-2.50", "0.00", "3.00"]
    assert "shape (2, 2)" in figure.data
    assert '<th scope="row">a</th>' in figure.data
    assert '<th scope="col">&lt;y&gt;</th>' in figure.data


@pytest.mark.parametrize(
    ("tensor", "shown"),
    [
        ([1, 2, 3], ["1", "2", "3"]),
        (7.0, ["7.00"]),
        (torch.tensor([[True, False]]), ["✓", "·"]),
        (torch.tensor([0.0, -torch.inf, torch.inf, torch.nan]), ["0.00", "−∞", "∞", "NaN"]),
        (torch.tensor([-0.001], dtype=torch.bfloat16), ["0.00"]),
        (torch.ones(1, requires_grad=True), ["1.00"]),
        (torch.zeros(0, 3), []),
    ],
)
def test_matrix_shows_any_small_tensor(tensor, shown):
    assert cells(visualize.matrix(tensor)) == shown


def test_matrix_prints_a_column_of_counts_without_decimals():
    sizes = torch.tensor([[250.0, 0.5, 1.0], [4000.0, 2.0, 0.0]])
    assert cells(visualize.matrix(sizes)) == ["250", "0.50", "1.00", "4000", "2.00", "0.00"]


def test_a_line_over_whole_numbers_is_ticked_at_whole_numbers():
    def axis(places, **options):
        rows = [{"x": x, "y": 1.0} for x in places]
        chart = visualize.line_chart(rows, x="x", y="y", **options).to_dict()
        return chart["layer"][0]["encoding"]["x"].get("axis")

    assert axis([1, 2, 5]) == {"tickMinStep": 1}
    assert axis([1, 2, 4], log_x=True)["values"] == [1, 2, 4]
    assert axis([0.5, 1.0, 2.0]) is None


def test_matrix_gives_one_table_per_slice():
    figure = visualize.matrix(torch.arange(12).view(2, 1, 2, 3))
    assert re.findall("<caption>(.*?)</caption>", figure.data) == ["[0, 0]", "[1, 0]"]
    assert cells(figure) == [str(number) for number in range(12)]


def test_matrix_shades_the_larger_number_more_and_negatives_in_their_own_colour():
    figure = visualize.matrix([[0.0, 1.0, 2.0, -2.0]], role="key")
    shades = re.findall(r"background:(#\w{6})(\w\w)", figure.data)
    assert [colour for colour, _ in shades[1:]] == [visualize.ROLE_COLOURS["key"]] * 2 + [
        visualize.ROLE_COLOURS["loss"]
    ]
    strength = [int(alpha, 16) for _, alpha in shades]
    assert strength[0] == 0 < strength[1] < strength[2] == strength[3] < 128


def test_matrix_shades_columns_of_unlike_units_apart():
    """A vocabulary of 8,000 beside a share: on one scale the share would look like nothing."""
    unlike = [[8000.0, 0.5], [2000.0, 1.0]]
    together, apart = (
        re.findall(r"background:#\w{6}(\w\w)", visualize.matrix(unlike, by_column=by).data)
        for by in (False, True)
    )
    assert together[:2] == ["66", "00"] and together[3] == "00"
    assert apart == ["66", "33", "1a", "66"]


def test_a_table_has_a_heading_for_each_column_and_a_name_for_each_row():
    page = visualize.table(["loss", "after"], [["Ana & Ben", 0.5]], "two <runs>").data
    assert page.count('scope="col"') == 2 and page.count('scope="row"') == 1
    assert ">Ana &amp; Ben</th>" in page
    assert "<td>0.5</td>" in page and "two &lt;runs&gt;" in page
    assert "<details" not in page
    with pytest.raises(ValueError, match="1 cells for 2 columns"):
        visualize.table(["a", "b"], [["alone"]])


def test_a_table_can_be_folded_behind_a_line():
    page = visualize.table(["loss", "after"], [["a", 0.5]], "below", folded="all <seeds>").data
    opened, line, rest = re.fullmatch(
        "(<details>)<summary>(.*?)</summary>(.*)</details>", page, re.DOTALL
    ).groups()
    assert line == "all &lt;seeds&gt;" and rest.startswith("<figure") and "below" in rest


def test_matrix_names_mistakes():
    with pytest.raises(ValueError, match=r"3 row_labels .* shape \(2, 2\), which has 2 rows"):
        visualize.matrix(torch.eye(2), ["a", "b", "c"])
    with pytest.raises(ValueError, match="1 column_labels"):
        visualize.matrix(torch.eye(2), None, ["a"])
    with pytest.raises(ValueError, match="role must be one of query"):
        visualize.matrix(torch.eye(2), role="banana")
    with pytest.raises(ValueError, match="Slice it first"):
        visualize.matrix(torch.zeros(100, 100))


# --------------------------------------------------------------------------------------- diagrams

SVG = (
    '<?xml version="1.0"?>\n<!-- made by hand -->\n'
    '<svg viewBox="0 0 9 9" role="presentation" aria-label="old">'
    '<defs><marker id="arrow"/><g id="arrow-2"/></defs>'
    '<path marker-end="url(#arrow)"/><use href="#arrow-2"/></svg>'
)


@pytest.fixture
def shown(monkeypatch, tmp_path):
    """The HTML that show_image displays, with two diagrams in a folder of our own."""
    pages = []
    monkeypatch.setattr(diagrams, "IMAGES", tmp_path)
    monkeypatch.setattr("IPython.display.display", lambda page: pages.append(page.data))
    (tmp_path / "encoder.svg").write_text(SVG)
    (tmp_path / "decoder.svg").write_text(SVG)
    return pages


def test_a_diagram_is_part_of_the_page_with_its_text_alternative(shown):
    visualize.show_image("encoder", 'An encoder with "two" layers & a norm')
    (page,) = shown
    assert "<?xml" not in page and "<!--" not in page
    assert page.count("aria-label") == 1 and page.count("role=") == 1
    assert 'role="img"' in page
    assert text_alternative(HTML(page)) == 'An encoder with "two" layers & a norm'


def test_two_diagrams_share_no_id_and_keep_their_references(shown):
    visualize.show_image("encoder", "one")
    visualize.show_image("decoder.svg", "two")
    ids = [re.findall(r'\bid="([^"]+)"', page) for page in shown]
    assert not set(ids[0]) & set(ids[1])
    for page, own in zip(shown, ids, strict=True):
        assert re.findall(r"#([\w-]+)", page) == own


def test_a_narrow_column_gets_a_drawing_of_its_own_with_the_same_words(shown, tmp_path):
    (tmp_path / "phone").mkdir()
    (tmp_path / "phone" / "encoder.svg").write_text(SVG)
    visualize.show_image("encoder", "An encoder")
    (page,) = shown
    wide, narrow = re.findall(r"<svg[^>]*>", page)
    assert 'class="wide"' in wide and 'class="narrow"' in narrow
    assert all('aria-label="An encoder"' in one for one in (wide, narrow))
    assert "display:none" in narrow and "display:none" not in wide
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids)) == 4


@pytest.mark.parametrize("path", [path for path in sorted(diagrams.IMAGES.glob("*.svg"))
                                  if path.stem not in ("hero", "logo")], ids=lambda path: path.stem)
def test_a_diagram_can_be_read_on_a_phone(path):
    """It has a narrow form or is narrow itself; no letters below 11 px in the width it is for."""
    phone = path.parent / "phone" / path.name
    for file, column in ((path, 640 if phone.exists() else 358), (phone, 358)):
        if not file.exists():
            continue
        svg = file.read_text(encoding="utf-8")
        width = float(re.search(r'viewBox="\S+ \S+ (\S+)', svg)[1])
        sizes = [float(size) for size in re.findall(r'font-size="([\d.]+)"', svg)]
        assert min(sizes) * column / width >= 11, file


def test_a_missing_diagram_names_those_there_are(shown):
    with pytest.raises(FileNotFoundError, match="no diagram 'encodr'.*decoder, encoder"):
        visualize.show_image("encodr", "An encoder")
    with pytest.raises(ValueError, match="needs alt"):
        visualize.show_image("encoder", "  ")


# --------------------------------------------------------------------------------------- heatmap


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (1, 3), (2, 1)])
def test_a_heatmap_holds_every_weight_and_a_menu_where_there_is_a_choice(shape):
    weights = attention(*shape, 4, 5)
    chart = visualize.attention_heatmap(weights, QUERIES, KEYS)
    layers, heads = ((1, 1) + shape)[-2:]
    full = weights.view(layers, heads, 4, 5)
    rows = rows_of(chart)
    assert len(rows) == full.numel()
    for row in rows:
        weight = full[row["layer"], row["head"], row["q"], row["k"]].item()
        assert row["weight"] == pytest.approx(weight, abs=5e-5)
    params = params_of(chart)
    for name, size in (("layer", layers), ("head", heads)):
        if size > 1:
            assert params[f"chosen_{name}"]["bind"]["options"] == list(range(size))
            assert f"datum.{name} === chosen_{name}" in json.dumps(chart.to_dict()["transform"])
        else:
            assert f"chosen_{name}" not in params
    # The keyboard reaches the query rows through a menu.
    assert params["query_row"]["bind"]["options"] == [None, 0, 1, 2, 3]


def test_repeated_tokens_stay_apart():
    chart = visualize.attention_heatmap(attention(4, 5), QUERIES, KEYS).to_dict()
    encoding = chart["layer"][0]["encoding"]
    assert encoding["y"]["sort"] == ["0 Ein", "1 Mann", "2 Ein", "3 ."]
    assert len(set(encoding["x"]["sort"])) == 5
    # Columns are keys and rows are queries: every name is looked up in its own list.
    assert (encoding["x"]["field"], encoding["y"]["field"]) == ("key", "query")
    lookups = {t["as"]: t["calculate"] for t in chart["layer"][0]["transform"]}
    assert lookups["key"] == f"{json.dumps(encoding['x']['sort'])}[datum.k]"
    assert lookups["query"] == f"{json.dumps(encoding['y']['sort'])}[datum.q]"


def test_numbers_stand_in_the_cells_where_there_is_room():
    for n_keys, asked, written in ((10, None, 2), (11, None, 1), (11, True, 2), (10, False, 1)):
        tokens = ["a"] * n_keys
        chart = visualize.attention_heatmap(
            attention(2, n_keys), ["q", "r"], tokens, show_numbers=asked
        )
        assert len(chart.to_dict()["layer"]) == written


def test_a_list_of_layers_and_a_batch_of_one_are_accepted():
    weights = attention(2, 3, 4, 5)
    expected = rows_of(visualize.attention_heatmap(weights, QUERIES, KEYS))
    for given in (list(weights), [layer[None] for layer in weights], weights.numpy()):
        assert rows_of(visualize.attention_heatmap(given, QUERIES, KEYS)) == expected


def test_masked_cells_have_no_weight():
    mask = torch.ones(4, 5, dtype=torch.bool).tril()
    chart = visualize.attention_heatmap(attention(3, 4, 5), QUERIES, KEYS, mask=mask[None, None])
    for row in rows_of(chart):
        assert (row["weight"] is None) == (row["k"] > row["q"])
    assert visualize.ROLE_COLOURS["masked"] in chart.to_json()


def test_a_heatmap_says_in_words_what_it_shows():
    weights = torch.tensor([[0.9, 0.1], [0.25, 0.75]])
    chart = visualize.attention_heatmap(weights, ["der", "Hund"], ["the", "dog"]).to_dict()
    assert chart["title"] == "‘der’ attends most to ‘the’"
    assert "‘der’ to ‘the’ (0.90), ‘Hund’ to ‘dog’ (0.75)" in chart["description"]
    # Of several heads, the words are about the one that is shown at first.
    heads = torch.stack([weights, weights.flip(1)])
    chart = visualize.attention_heatmap(heads, ["der", "Hund"], ["the", "dog"]).to_dict()
    assert chart["title"] == "‘der’ attends most to ‘the’ in layer 0, head 0"
    assert "layer 0, head 0: ‘der’ to ‘the’ (0.90)" in chart["description"]
    own = visualize.attention_heatmap(weights, "ab", "cd", "Title", "Words").to_dict()
    assert (own["title"], own["description"]) == ("Title", "Words")


def test_a_heatmap_opens_where_its_words_say():
    """A title and a description of one head stand over that head."""
    weights = attention(2, 3, 4, 5)
    weights[1, 2, 0] = torch.tensor([0, 0, 0, 0, 1.0])
    chart = visualize.attention_heatmap(weights, QUERIES, KEYS, layer=1, head=2)
    params = params_of(chart)
    assert (params["chosen_layer"]["value"], params["chosen_head"]["value"]) == (1, 2)
    assert chart.to_dict()["title"] == "‘Ein’ attends most to ‘.’ in layer 1, head 2"
    assert "layer 1, head 2: ‘Ein’ to ‘.’ (1.00)" in chart.to_dict()["description"]
    with pytest.raises(ValueError, match="no layer 2, head 0: weights has 2 layers with 3 heads"):
        visualize.attention_heatmap(weights, QUERIES, KEYS, layer=2)


def test_a_heatmap_names_mistakes():
    with pytest.raises(ValueError, match="5 key positions, but there are 4 key tokens"):
        visualize.attention_heatmap(attention(4, 5), QUERIES, QUERIES)
    with pytest.raises(ValueError, match=r"for one\s+sentence, got \(2, 2, 3, 4, 5\)"):
        visualize.attention_heatmap(attention(2, 2, 3, 4, 5), QUERIES, KEYS)
    with pytest.raises(ValueError, match="mask of shape"):
        visualize.attention_heatmap(attention(4, 5), QUERIES, KEYS, mask=torch.ones(4, 4))


# ---------------------------------------------------------------------------------------- BertViz


THREE = {"encoder": (2, 3, 5, 5), "decoder": (2, 3, 4, 4), "cross": (2, 3, 4, 5)}


def title_of(view):
    """The name of the frame, which is its text alternative."""
    return html.unescape(re.search(r'<iframe title="([^"]*)"', view.data)[1])


def frame_of(view):
    """The document in the frame: what BertViz draws."""
    return html.unescape(re.search(r'srcdoc="([^"]*)"', view.data)[1])


def data_of(view):
    """The numbers that lie beside the frame, for the pages of the book."""
    found = re.search(r'<script type="application/json">(.*?)</script>', view.data, re.DOTALL)
    return json.loads(found[1])


def bertviz_attention(view):
    """The numbers that BertViz hands to the browser."""
    page = frame_of(view)
    start = re.search(r"(?:const params|window\.bertviz_params) = (?=\{)", page).end()
    return json.JSONDecoder().raw_decode(page[start:])[0]


def test_every_bertviz_view_says_what_it_shows():
    weights, vectors = attention(2, 3, 4, 4), torch.randn(2, 3, 4, 8)
    three = {name: attention(*shape) for name, shape in THREE.items()}
    views = {
        "Head view": visualize.head_view(weights, QUERIES),
        "Model view": visualize.model_view(list(weights[:, None]), QUERIES),
        "Neuron view": visualize.neuron_view(vectors, vectors, weights, QUERIES),
    }
    for name, view in views.items():
        assert isinstance(view, HTML)
        assert title_of(view).startswith(f"{name}. Attention weights")
        assert "Strongest weight of each query" in title_of(view)
    for name in ("Encoder", "Decoder", "Cross"):
        view = visualize.head_view(three, QUERIES, KEYS)
        assert f"{name}: " in title_of(view) and f">{name}</option>" in frame_of(view)
    assert title_of(visualize.head_view(weights, QUERIES, description="A.")) == "Head view. A."


@pytest.mark.parametrize("view", [visualize.head_view, visualize.model_view])
def test_bertviz_and_the_page_get_the_tensors_that_were_given(view):
    """One way to name them, as the heatmap does: weights, query tokens, key tokens."""
    three = {name: attention(*shape) for name, shape in THREE.items()}
    tokens = {"encoder": (KEYS, KEYS), "decoder": (QUERIES, QUERIES), "cross": (QUERIES, KEYS)}
    for given, expected in ((three, three), (three["cross"], {"weights": three["cross"]})):
        shown = view(given, QUERIES, KEYS)
        drawn = bertviz_attention(shown)["attention"]
        parts = data_of(shown)["parts"]
        assert [part["name"] for part in parts] == list(expected)
        for bert, part, (name, tensor) in zip(drawn, parts, expected.items(), strict=True):
            queries, keys = tokens["cross" if name == "weights" else name]
            assert (bert["left_text"], bert["right_text"]) == (queries, keys)
            assert (part["queries"], part["keys"]) == (queries, keys)
            np.testing.assert_allclose(bert["attn"], tensor.numpy(), rtol=1e-6)
            np.testing.assert_allclose(part["weights"], tensor.numpy(), atol=5.1e-5)


def test_a_model_view_takes_the_room_that_there_is():
    """BertViz's own script has what is put in its place; tests/browser measures the picture."""
    page = frame_of(visualize.model_view(attention(2, 3, 4, 4), QUERIES))
    for given, narrower in bertviz_views.NARROWER.items():
        assert page.count(narrower) == 1 and given not in page.replace(narrower, "")


def test_a_neuron_view_shows_our_tensors():
    queries, keys = torch.randn(2, 3, 4, 8), torch.randn(2, 3, 5, 8)
    weights = attention(2, 3, 4, 5)
    view = visualize.neuron_view(queries, keys, weights, QUERIES, KEYS, layer=1, head=2)
    numbers = bertviz_attention(view)
    shown = numbers["attention"]["all"]
    assert shown["left_text"] == QUERIES
    for name, tensor in (("queries", queries), ("keys", keys), ("attn", weights)):
        np.testing.assert_allclose(shown[name], tensor.numpy(), rtol=1e-6)
    assert (numbers["layer"], numbers["head"]) == (1, 2)
    data = data_of(view)
    for name, tensor in (("queries", queries), ("keys", keys)):
        np.testing.assert_allclose(data["vectors"][name], tensor.numpy(), atol=5.1e-5)
    # What BertViz takes from its model comes after it: the keys' tokens, and who may look where.
    last = frame_of(view)[frame_of(view).rindex("<script>") :]
    assert f"right_text = {json.dumps(KEYS)};" in last and "bidirectional = true;" in last
    causal = visualize.neuron_view(queries, keys, weights, QUERIES, KEYS, causal=True)
    assert "bidirectional = false;" in frame_of(causal) and data_of(causal)["causal"]


def test_a_token_cannot_end_the_script():
    view = visualize.head_view(attention(1, 2, 2), ["a", "</script>"])
    assert view.data.count("</script>") == 1  # of the numbers; the frame is in an attribute
    page = frame_of(view)
    assert page.count("</script>") == len(re.findall(r"<script\b", page))


def test_bertviz_views_name_mistakes():
    weights = attention(2, 3, 4, 4)
    with pytest.raises(ValueError, match="4 query positions, but there are 5 query tokens"):
        visualize.head_view(weights, KEYS)
    with pytest.raises(ValueError, match="cross has 4 key positions, but there are no key"):
        visualize.model_view({"cross": weights}, QUERIES)
    with pytest.raises(ValueError, match="any of encoder, decoder and cross, got crosss"):
        visualize.head_view({"crosss": weights}, QUERIES, QUERIES)
    with pytest.raises(ValueError, match="queries of shape"):
        visualize.neuron_view(torch.randn(3, 4, 8), torch.randn(3, 4, 8), weights, QUERIES)
    with pytest.raises(ValueError, match="8 numbers and a key 7"):
        vectors = torch.randn(2, 3, 4, 8)
        visualize.neuron_view(vectors, vectors[..., :7], weights, QUERIES)


# ----------------------------------------------------------------------------------------- curves

RUNS = [
    {"step": step, "loss": 3 / step + seed, "norm": norm, "note": "x"}
    for norm in ("pre", "post")
    for seed in (0, 1)
    for step in (1, 2, 4)
]


def test_a_line_chart_holds_the_rows_that_can_be_drawn():
    bad = [
        {"step": 5, "loss": float("nan"), "norm": "pre"},
        {"step": 6, "loss": None, "norm": "pre"},
        {"step": 7, "norm": "pre"},
        {"step": 8, "loss": float("inf"), "norm": "pre"},
    ]
    chart = visualize.line_chart(RUNS + bad, "step", "loss", "norm", band=True)
    assert rows_of(chart) == [{k: row[k] for k in ("step", "loss", "norm")} for row in RUNS]


def test_a_line_chart_takes_a_table_and_tensors():
    import pandas

    expected = rows_of(visualize.line_chart(RUNS, "step", "loss", "norm"))
    assert rows_of(visualize.line_chart(pandas.DataFrame(RUNS), "step", "loss", "norm")) == expected
    rows = [{"step": 1, "loss": torch.tensor(2.5)}]
    assert rows_of(visualize.line_chart(rows, "step", "loss")) == [{"step": 1, "loss": 2.5}]


def test_a_band_spans_the_seeds_around_their_mean():
    area, line = visualize.line_chart(RUNS, "step", "loss", "norm", band=True).to_dict()["layer"][
        :2
    ]
    assert area["mark"]["type"] == "area" and line["mark"]["type"] == "line"
    assert area["encoding"]["y"]["aggregate"] == "min"
    assert area["encoding"]["y2"]["aggregate"] == "max"
    assert line["encoding"]["y"]["aggregate"] == "mean"
    plain = visualize.line_chart(RUNS, "step", "loss", "norm").to_dict()
    assert [layer["mark"]["type"] for layer in plain["layer"]] == ["line", "point"]


def test_series_differ_in_more_than_colour_and_a_click_in_the_legend_chooses_one():
    chart = visualize.line_chart(RUNS, "step", "loss", "norm")
    encoding = chart.to_dict()["layer"][0]["encoding"]
    assert encoding["strokeDash"]["field"] == encoding["color"]["field"] == "norm"
    assert params_of(chart)["shown"]["bind"] == "legend"
    dashes = [tuple(dash) for dash in visualize.SERIES_DASHES]
    assert len(set(dashes)) == len(dashes) == len(visualize.SERIES_COLOURS)
    one = visualize.line_chart(RUNS[:3], "step", "loss", "norm")
    assert "shown" not in params_of(one)  # nothing to choose


def marks_of(specification):
    for mark in specification.get("marks", []):
        yield mark
        yield from marks_of(mark)


@pytest.mark.parametrize("band", [False, True])
def test_a_tooltip_finds_what_it_names(band):
    """`nearest` lays cells over the points. The datum of a cell is the point, and the point's is
    the row: a tooltip of a cell reads its numbers from `datum.datum` and the name of the series
    from what the point has too, its description."""
    vl_convert = pytest.importorskip("vl_convert")
    chart = visualize.line_chart(RUNS, "step", "loss", "norm", band=band).to_dict()
    marks = list(marks_of(vl_convert.vegalite_to_vega(chart)))
    (points,) = [mark for mark in marks if mark["type"] == "symbol"]
    (cells,) = [mark for mark in marks if mark["name"].endswith("voronoi")]
    tooltip = cells["encode"]["update"]["tooltip"]["signal"]
    read = set(re.findall(r'(datum(?:\.datum)?)\["([^"]+)"\]', tooltip))
    value = "mean_loss" if band else "loss"
    assert {("datum.datum", "step"), ("datum.datum", value)} <= read
    of_the_point = {field for where, field in read if where == "datum"}
    assert of_the_point == {"description"}  # or none, once Vega-Lite reads it from the row
    said = points["encode"]["update"]["description"]["signal"]
    assert 'datum["description"]' in said and "norm" in tooltip
    (named,) = [t for t in chart["layer"][0]["transform"] if t.get("as") == "description"]
    assert named["calculate"] == 'datum["norm"]'


def test_axes_are_as_asked():
    rows = [{"step": 10, "loss": 5.0}, {"step": 20, "loss": 4.0}]

    def scales(**options):
        encoding = visualize.line_chart(rows, "step", "loss", **options).to_dict()["layer"][0]
        return [encoding["encoding"][axis]["scale"] for axis in "xy"]

    x, y = scales()
    assert (x["zero"], y["zero"]) == (False, False)
    assert scales(zero=True)[1]["zero"] is True
    x, y = scales(log_x=True, log_y=True)
    assert (x["type"], y["type"]) == ("log", "log")


def test_series_have_dashes_of_their_own():
    assert len(set(map(tuple, visualize.SERIES_DASHES))) == len(visualize.SERIES_COLOURS)
    rows = [{"step": s, "loss": 1.0, "run": run} for run in "abc" for s in (0, 1)]
    curves = visualize.line_chart(rows, "step", "loss", "run").to_dict()["layer"][0]
    assert curves["encoding"]["strokeDash"]["scale"]["range"] == visualize.SERIES_DASHES


def test_a_line_chart_says_in_words_what_it_shows():
    chart = visualize.line_chart(RUNS[2::-1], "step", "loss", "norm", x_title="updates").to_dict()
    assert chart["description"] == ("Line chart of loss by step. pre: 3 at 1 to 0.75 at 4.")
    assert chart["title"] == "loss by updates"
    own = visualize.line_chart(RUNS, "step", "loss", title="T", description="D").to_dict()
    assert (own["title"], own["description"]) == ("T", "D")


def test_a_line_chart_names_a_missing_key():
    with pytest.raises(ValueError, match="none of 12 rows has finite 'step' and 'bleu'.*note"):
        visualize.line_chart(RUNS, "step", "bleu")
    with pytest.raises(ValueError, match="none of 0 rows"):
        visualize.line_chart([], "step", "bleu")


# ------------------------------------------------------------------------------------- live curve


class Handle:
    def __init__(self):
        self.pages = []

    def update(self, page):
        self.pages.append(page.data)


@pytest.fixture
def notebook(monkeypatch):
    handle = Handle()

    def display(page, display_id):
        assert display_id is True
        handle.update(page)
        return handle

    monkeypatch.setattr("IPython.get_ipython", lambda: object())
    monkeypatch.setattr("IPython.display.display", display)
    return handle.pages


def lines_of(picture, log_x=False):
    """[(points, attributes)] of the lines of a live curve, read from the labels of its axes."""
    def axis(pattern):
        found = [(float(at), float(v.replace(",", ""))) for at, v in re.findall(pattern, picture)]
        (a, low), (b, high) = found[0], found[-1]
        if not log_x or "left" not in pattern:
            return lambda at: low + (at - a) / (b - a) * (high - low)
        return lambda at: low * (high / low) ** ((at - a) / (b - a))

    x = axis(r'left:([\d.]+)%;[^>]*>([\d.,]+)</span>')
    y = axis(r'right:100%;top:([\d.]+)%;[^>]*>([\d.,]+)</span>')
    return [
        ([tuple(round(f(float(v)), 1) for f, v in zip((x, y), point.split(","), strict=True))
          for point in points.split()], style)
        for points, style in re.findall(r'<polyline points="([^"]+)" ([^>]*)/>', picture)
    ]


def test_a_live_curve_redraws_at_most_once_a_second(notebook, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(curves.time, "monotonic", lambda: now[0])
    curve = visualize.LiveCurve("step", ["loss", "bleu"])
    for step in range(30):  # three seconds, ten steps each
        now[0] = 100 + step / 10
        curve({"step": step, "loss": 30 - step, "bleu": step if step % 10 == 9 else None})
    assert len(notebook) == 3
    curve.draw()
    loss, bleu = lines_of(notebook[-1])
    assert loss[0] == [(step, 30 - step) for step in range(30)]
    assert bleu[0] == [(step, step) for step in (9, 19, 29)]
    assert "stroke-dasharray" in bleu[1] and "stroke-dasharray" not in loss[1]
    assert loss[1] != bleu[1].replace("stroke-dasharray", "")
    assert 'role="img" aria-label="Training: step 29, loss 1, bleu 29"' in notebook[-1]


def test_a_live_curve_of_many_points_stays_small(notebook):
    curve = visualize.LiveCurve(y="loss", seconds=0)
    for step in range(3000):
        curve.points["loss"].append((step, np.sin(step)))
    curve({"step": 3000, "loss": float("nan")})
    assert len(notebook) == 1 and len(notebook[0]) < 250_000


def test_a_live_curve_shows_an_earlier_run_behind(notebook):
    """Paler and below, with the same dashes; the summary tells the live numbers alone."""
    ghost = [{"step": 1, "loss": 3.0}, {"step": 9, "loss": 1.0, "bleu": 4.0}, {"step": 10, "x": 1}]
    curve = visualize.LiveCurve("step", ["loss", "bleu"], seconds=0, ghost=ghost, log_x=True)
    curve.draw()
    assert not notebook  # nothing live yet
    curve.below = "<p>fast</p>"
    curve({"step": 2, "loss": 2.5})
    pale, bleu, live = lines_of(notebook[-1], log_x=True)  # what is live lies above
    assert pale[0] == [(1, 3), (9, 1)] and bleu[0] == [(9, 4)] and live[0] == [(2, 2.5)]
    grey = visualize.ROLE_COLOURS["masked"]
    assert grey in pale[1] and grey in bleu[1] and grey not in live[1]
    assert "stroke-dasharray" in bleu[1]
    assert 'aria-label="Training: step 2, loss 2.5"' in notebook[-1]
    assert "png" not in notebook[-1], "it follows a dark page"
    assert notebook[-1].endswith("<p>fast</p>")


def test_a_live_curve_prints_outside_a_notebook(monkeypatch, capsys):
    monkeypatch.setattr("IPython.get_ipython", lambda: None)
    curve = visualize.LiveCurve()
    curve.draw()  # nothing yet
    curve({"step": 1, "loss": 2.5})
    assert capsys.readouterr().out == "Training: step 1, loss 2.5\n"


# ---------------------------------------------------------------------------------- still pictures


def test_a_still_picture_draws_its_numbers():
    """Areas of squares and lengths of bars grow with the numbers; texts are escaped."""
    drawn = visualize.attention_squares([[0.25, 0.64], [1, 0]], ["a", "<b>"], ["c", "d"], "L")
    widths = [float(w) for w in re.findall(r'<rect [^>]*width="([\d.]+)"', drawn)]
    assert widths == pytest.approx([11.5, 18.4, 23, 0])
    assert "&lt;b&gt;" in drawn and 'role="img" aria-label="L"' in drawn
    drawn = visualize.bars([("a", 0.5), ("b", 0.25)], "L")
    first, second = (float(w) for w in re.findall(r'<rect [^>]*width="([\d.]+)"', drawn))
    assert first == 2 * second and "50%" in drawn and "25%" in drawn
    line = re.search(r'points="([^"]+)"', visualize.curve([(1, 4), (2, 2), (4, 0)], "x", "y", "L"))
    (_, top), (_, half), (_, bottom) = (map(float, p.split(",")) for p in line[1].split())
    assert half - top == pytest.approx(bottom - half)
    assert visualize.sentences([("a", "<")]) == "<dl><dt><small>a</small></dt><dd>&lt;</dd></dl>"


def test_a_still_picture_wants_a_label_for_each_row_and_column():
    with pytest.raises(ValueError, match=r"shape \(1, 2\); expected \(2, 2\)"):
        visualize.attention_squares([[1, 0]], ["a", "b"], ["c", "d"], "L")


@pytest.mark.parametrize(
    ("choices", "answer", "message"),
    [(["one"], 0, "2 to 4 choices"), (["a", ""], 0, "2 to 4"), (["a", "b"], 2, "from 0 to 1"),
     (["a", "b"], None, "from 0 to 1")],
)
def test_a_guess_says_what_is_missing(choices, answer, message):
    with pytest.raises(ValueError, match=message):
        visualize.guess("name", "Why?", choices, answer, "Because.")


# ---- grids of results --------------------------------------------------------------------------

GRID = [
    {"heads": heads, "steps": steps, "reader": reader, "seed": seed, "right": heads / 4 - seed / 10}
    for heads in (1, 2)
    for steps in (10, 20)
    for reader in ("map", "network")
    for seed in (0, 1)
]


def test_a_grid_shows_the_mean_of_the_seeds_and_frames_what_was_asked_for():
    chart = visualize.result_grid(
        GRID, "heads", "reader", "right", menus={"steps": 10}, framed=[{"heads": 2, "steps": 20}]
    ).to_dict()
    squares = rows_of(visualize.result_grid(GRID, "heads", "reader", "right", menus={"steps": 10}))
    assert len(squares) == 8 and all(square["seeds"] == 2 for square in squares)
    (one,) = [s for s in squares if (s["heads"], s["steps"], s["reader"]) == (2, 20, "map")]
    assert one["mean"] == pytest.approx(0.45) and one["lowest"] == pytest.approx(0.4)
    assert one["highest"] == pytest.approx(0.5)
    (drawn,) = chart["datasets"].values()
    framed = [s for s in drawn if s["framed"]]
    assert {(s["heads"], s["steps"]) for s in framed} == {(2, 20)} and len(framed) == 2
    assert "heads 2 reader map: 45%" in chart["description"]
    assert chart["description"].count(":") == 4  # what the menu shows at first


def test_a_grid_names_the_setting_that_was_left_out():
    panels = visualize.result_grid(GRID, "heads", "steps", "right", panel="reader").to_dict()
    assert [part["title"] for part in panels["hconcat"]] == ["map", "network"]
    odd = [*GRID, GRID[0] | {"seed": 2}]
    with pytest.raises(ValueError, match="name every setting"):
        visualize.result_grid(odd, "heads", "reader", "right")
    with pytest.raises(ValueError, match="no rows"):
        visualize.result_grid([], "heads", "reader", "right")


def test_a_title_may_have_lines():
    """Two short lines, where one would be cut on a phone."""
    lines, rows = ["More steps,", "less loss"], [{"step": i, "loss": 1 / (i + 1)} for i in range(3)]
    charts = [
        visualize.line_chart(rows, "step", "loss", title=lines),
        visualize.result_grid([{"a": i, "b": j, "v": i} for i in (0, 1) for j in (0, 1)],
                              "a", "b", "v", title=lines),
        visualize.attention_heatmap(torch.eye(2), ["a", "b"], ["a", "b"], title=lines),
    ]
    for chart in charts:
        title = chart.to_dict()["title"]
        assert (title["text"] if isinstance(title, dict) else title) == lines
