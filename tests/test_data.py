"""Sentence pairs: both layouts, the order of sources, and errors that name the line."""

import json
import socket
import sys

import pytest

from transformer_lib.data import _without_waiting, load_parallel

ROWS = [{"de": f"Satz {i} .", "en": f"sentence {i} ."} for i in range(5)]


def write(folder, **splits):
    for split, rows in splits.items():
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(folder)


def test_a_folder_of_json_lines(tmp_path, capsys):
    pairs = load_parallel(write(tmp_path, train=ROWS, val=ROWS[:2], test=ROWS[:1]))
    assert list(pairs) == ["train", "validation", "test"]
    assert pairs["train"] == [(row["de"], row["en"]) for row in ROWS]
    assert [len(pairs[split]) for split in pairs] == [5, 2, 1]
    assert "5 train, 2 validation, 1 test" in capsys.readouterr().out


def test_the_translation_layout_is_the_same(tmp_path):
    rows = [{"id": str(i), "translation": row} for i, row in enumerate(ROWS)]
    assert load_parallel(write(tmp_path, train=rows))["train"][0] == ("Satz 0 .", "sentence 0 .")


def test_the_direction_is_the_callers_choice(tmp_path):
    folder = write(tmp_path, train=ROWS)
    forth, back = load_parallel(folder, "de", "en"), load_parallel(folder, "en", "de")
    assert back["train"] == [(target, source) for source, target in forth["train"]]


def test_outer_spaces_are_no_text(tmp_path):
    pairs = load_parallel(write(tmp_path, train=[{"de": " a ", "en": "b\n"}]))
    assert pairs["train"] == [("a", "b")]


def test_auto_takes_the_folder_of_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("MULTI30K_DIR", write(tmp_path, train=ROWS))
    assert load_parallel("auto") == load_parallel("multi30k")
    assert len(load_parallel()["train"]) == 5
    monkeypatch.setenv("MULTI30K_DIR", str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match="MULTI30K_DIR is .*nowhere, not a folder; correct it or"):
        load_parallel("auto")


def test_auto_falls_back_to_mini_and_says_so(monkeypatch, capsys):
    monkeypatch.delenv("MULTI30K_DIR", raising=False)
    monkeypatch.setitem(sys.modules, "datasets", None)  # as if it were not installed
    pairs = load_parallel("auto")
    assert pairs == load_parallel("mini")
    assert "mini corpus" in capsys.readouterr().out


def test_mini_is_the_same_every_time_and_goes_both_ways():
    forth, back = load_parallel("mini"), load_parallel("mini", "en", "de")
    assert forth == load_parallel("mini")
    assert set(forth) == {"train", "validation", "test"}
    assert back["test"] == [(target, source) for source, target in forth["test"]]
    with pytest.raises(ValueError, match="the mini corpus has 'de' and 'en', not 'fr'"):
        load_parallel("mini", "fr", "en")


GOOD = ROWS[0]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"de": "cut off', r"train.jsonl, line 2: not valid JSON: .*cut off.*expected an object"),
        ("", r"train.jsonl, line 2: not valid JSON"),
        ("[1, 2]", r"train.jsonl, line 2: expected an object with the languages 'de' and 'en'"),
        ({"de": "allein"}, r"train.jsonl, line 2: no 'en'; this row has \['de'\]"),
        ({"de": "allein", "en": "  "}, r"train.jsonl, line 2: the 'en' side is empty; every line"),
        ({"de": None, "en": "alone"}, r"train.jsonl, line 2: the 'de' side is empty"),
        ({"translation": {"en": "alone"}}, r"train.jsonl, line 2: no 'de'"),
    ],
)
def test_a_damaged_line_is_named(tmp_path, line, message):
    with pytest.raises(ValueError, match=message):
        load_parallel(write(tmp_path, train=[GOOD, line, GOOD]))


def test_an_empty_first_line_is_named(tmp_path):
    with pytest.raises(ValueError, match="train.jsonl, line 1: not valid JSON"):
        load_parallel(write(tmp_path, train=["", GOOD]))


def test_an_empty_file_is_an_error(tmp_path):
    (tmp_path / "train.jsonl").write_text("")
    with pytest.raises(ValueError, match="train.jsonl is empty; expected one JSON object a line"):
        load_parallel(str(tmp_path))


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="there is no folder .*absent; give an existing folder or"):
        load_parallel(str(tmp_path / "absent"))


def test_a_line_separator_inside_a_sentence_is_no_new_line(tmp_path):
    row = json.dumps({"de": "eins\u2028zwei", "en": "one two"}, ensure_ascii=False)
    assert len(load_parallel(write(tmp_path, train=[row]))["train"]) == 1


def test_a_folder_may_hold_only_a_test_split(tmp_path):
    assert list(load_parallel(write(tmp_path, test=ROWS))) == ["test"]


@pytest.fixture
def hub(monkeypatch):
    """A hub of one data set, with no network."""
    datasets = pytest.importorskip("datasets")

    def unreachable(*_, **__):
        raise OSError("no network in tests")

    monkeypatch.setattr(socket, "create_connection", unreachable)
    monkeypatch.setattr(datasets, "get_dataset_config_names", lambda name: ["de-en", "fr-en"])

    def serve(splits):
        asked = []

        def load_dataset(path, **options):
            asked.append((path, options))
            if splits is None:
                raise FileNotFoundError("not in the cache")
            return splits

        monkeypatch.setattr(datasets, "load_dataset", load_dataset)
        return asked

    return serve


def test_a_hub_data_set_may_name_the_pair_in_either_order(hub):
    asked = hub({"train": [{"translation": GOOD}], "dev": [{"translation": GOOD}]})
    pairs = load_parallel("some/books", "en", "de")
    assert asked == [("some/books", {"name": "de-en"})]
    assert pairs == {"train": [(GOOD["en"], GOOD["de"])], "validation": [(GOOD["en"], GOOD["de"])]}


def test_errors_of_hub_data_sets(hub):
    hub({"train": [GOOD, {"de": "allein", "en": ""}]})
    with pytest.raises(ValueError, match="some/set, split train, row 2: the 'en' side is empty"):
        load_parallel("some/set")
    hub({"other": [GOOD]})
    with pytest.raises(
        ValueError, match=r"some/set has no split that is known; it has \['other'\]"
    ):
        load_parallel("some/set")
    hub(None)
    with pytest.raises(ConnectionError, match="some/set is neither on the hub nor in its cache"):
        load_parallel("some/set")


def test_the_source_that_was_used_is_told(tmp_path, monkeypatch):
    folder = write(tmp_path, train=ROWS)
    assert load_parallel(folder).source == folder
    monkeypatch.setenv("MULTI30K_DIR", folder)
    assert load_parallel("auto").source == "multi30k"
    monkeypatch.delenv("MULTI30K_DIR")
    monkeypatch.setitem(sys.modules, "datasets", None)
    assert load_parallel("auto").source == "mini"


@pytest.mark.parametrize("behind_a_proxy", [False, True])
def test_without_a_hub_the_cache_is_asked_at_once(hub, monkeypatch, behind_a_proxy):
    import datasets
    import huggingface_hub

    proxies = {"https": "proxy:3128"} if behind_a_proxy else {}
    monkeypatch.setattr("transformer_lib.data.getproxies", lambda: proxies)
    modules = (datasets.config, huggingface_hub.constants)
    for module in modules:
        monkeypatch.setattr(module, "HF_HUB_OFFLINE", False)
    with pytest.raises(RuntimeError), _without_waiting():
        # Behind a proxy, a direct connection that fails says nothing about the hub.
        assert all(module.HF_HUB_OFFLINE is not behind_a_proxy for module in modules)
        raise RuntimeError
    assert not any(module.HF_HUB_OFFLINE for module in modules)


def test_a_folder_is_the_same_from_wherever_it_is_named(tmp_path, monkeypatch):
    (tmp_path / "my").mkdir()
    (tmp_path / "my" / "train.jsonl").write_text('\ufeff{"de": "Hund", "en": "dog"}\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    found = [load_parallel(name) for name in ("my", "./my/", "~/my", tmp_path / "my")]
    assert {pairs.source for pairs in found} == {str(tmp_path / "my")}
    assert all(pairs["train"] == [("Hund", "dog")] for pairs in found)


def test_a_notebook_without_widgets_gets_no_warning_with_its_data(tmp_path, monkeypatch, recwarn):
    """`datasets` imports a progress bar that warns where ipywidgets is missing."""
    warns = 'import warnings\nwarnings.warn("IProgress not found. Please update jupyter")\n'
    (tmp_path / "datasets.py").write_text(warns + "raise ImportError")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "datasets", raising=False)
    with pytest.raises(ImportError, match="pip install datasets"):
        load_parallel("someone/some_data", "de", "en")
    assert not recwarn.list


def test_without_datasets_a_mistyped_folder_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ImportError, match="my_foldr is no folder of .jsonl files; other data need"):
        load_parallel("my_foldr")
