"""Sentence pairs: both layouts, the order of sources, and errors that name the line."""

import json
import os

import pytest

from transformer_lib.corpora import folder, hub, mini
from transformer_lib.data import load_parallel

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


def test_a_language_is_not_translated_into_itself(tmp_path):
    with pytest.raises(ValueError, match="source and target are both 'de': give two languages"):
        load_parallel(write(tmp_path, train=ROWS), "de", "de")


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


def test_a_file_of_a_misspelt_split_is_named(tmp_path, capsys):
    line = '{"de": "ein Hund", "en": "a dog"}\n'
    for name in ("train", "val", "validaton"):
        (tmp_path / f"{name}.jsonl").write_text(line, encoding="utf-8")
    assert [*load_parallel(str(tmp_path))] == ["train", "validation"]
    said = "Not read: validaton.jsonl (the files of the splits are train.jsonl, "
    assert said in capsys.readouterr().out


def test_auto_falls_back_to_mini_and_says_so(without_datasets, monkeypatch, capsys):
    monkeypatch.delenv("MULTI30K_DIR", raising=False)
    pairs = load_parallel("auto")
    assert pairs == load_parallel("mini")
    assert "mini corpus" in capsys.readouterr().out


def test_mini_is_the_same_every_time_and_goes_both_ways():
    forth, back = load_parallel("mini"), load_parallel("mini", "en", "de")
    assert forth == load_parallel("mini")
    assert set(forth) == {"train", "validation", "test"}
    assert back["test"] == [(target, source) for source, target in forth["test"]]
    assert forth == mini.mini_corpus()  # which is (German, English)
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
        ({"de": 5, "en": "five"}, r"train.jsonl, line 2: the 'de' side is 5; expected a sentence"),
        ({"de": "\u200b\x00", "en": "none"}, r"train.jsonl, line 2: the 'de' side is empty"),
        ('{"de": "\\ud800", "en": "half"}', r"line 2: the 'de' side holds half of a surrogate"),
        (100_000 * "[", r"train.jsonl, line 2: not valid JSON"),
        ({"translation": {"en": "alone"}}, r"train.jsonl, line 2: no 'de'"),
    ],
)
def test_a_damaged_line_is_named(tmp_path, line, message):
    with pytest.raises(ValueError, match=message):
        load_parallel(write(tmp_path, train=[GOOD, line, GOOD]))


@pytest.mark.parametrize(
    ("encoding", "said"),
    [
        ("latin-1", r"train.jsonl, line 2: not valid UTF-8 text \(it may be Latin-1"),
        ("utf-16", r"train.jsonl, line 1: not valid UTF-8 text \(it begins like UTF-16\)"),
    ],
)
def test_another_encoding_is_named(tmp_path, encoding, said):
    rows = [json.dumps(row, ensure_ascii=False) for row in (GOOD, {"de": "schön", "en": "nice"})]
    (tmp_path / "train.jsonl").write_bytes("\n".join(rows).encode(encoding))
    with pytest.raises(ValueError, match=said + ".*Convert the file to UTF-8.*iconv"):
        load_parallel(str(tmp_path))


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


def module(name, text, tmp_path, monkeypatch):
    """Let every new process find a Python module of this name and text first."""
    places = tmp_path / "modules"
    places.mkdir(exist_ok=True)
    (places / f"{name}.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(places), prepend=os.pathsep)


@pytest.fixture
def without_datasets(tmp_path, monkeypatch):
    """As if `datasets` were not installed."""
    module("datasets", "raise ImportError('not here')", tmp_path, monkeypatch)
    module("huggingface_hub", "raise ImportError('not here')", tmp_path, monkeypatch)


FAKE_DATASETS = """
import json

def get_dataset_config_names(name):
    return ["de-en", "fr-en"]

def load_dataset(*asked):
    print(json.dumps(asked), file=open({log!r}, "a"))
    {does}
"""


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A hub of one data set, with no network. Returns the file of what was asked for."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    def serve(does):
        log = tmp_path / "asked"
        text = FAKE_DATASETS.format(log=str(log), does=does)
        module("datasets", text, tmp_path, monkeypatch)
        return log

    return serve


def test_a_hub_data_set_may_name_the_pair_in_either_order(served):
    rows = [{"translation": GOOD}]
    log = served(f"return {{'train': {rows}, 'dev': {rows}}}")
    pairs = load_parallel("some/books", "en", "de")
    assert json.loads(log.read_text()) == ["some/books", "de-en"]
    assert pairs == {"train": [(GOOD["en"], GOOD["de"])], "validation": [(GOOD["en"], GOOD["de"])]}


@pytest.mark.parametrize(
    ("does", "error", "message"),
    [
        (
            f"return {{'train': [{GOOD}, {{'de': 'allein', 'en': ''}}]}}",
            ValueError,
            "some/set, split train, row 2: the 'en' side is empty",
        ),
        (
            "return {'other': []}",
            ValueError,
            r"some/set has none of the known splits; it has \['other'\]",
        ),
        (
            "raise FileNotFoundError('not in the cache')",
            ConnectionError,
            "some/set is neither on the hub nor in its cache: not in the cache",
        ),
        ("raise ValueError('no such part')", ValueError, "no such part"),
        ("import os; os.abort()", RuntimeError, "reading some/set failed"),
    ],
)
def test_errors_of_hub_data_sets(served, does, error, message):
    served(does)
    with pytest.raises(error, match=message):
        load_parallel("some/set")


def test_a_hub_that_never_answers_is_asked_once_and_for_seconds(silent_hub):
    pytest.importorskip("datasets")
    with pytest.raises(ConnectionError, match="some/set is neither on the hub nor in its cache"):
        hub.load("some/set", "de", "en")
    # 1.5 s at a patience of 1. Without the limit it is 4, without any patience minutes.
    assert silent_hub and silent_hub.seconds() < 3
    asked = len(silent_hub)
    with pytest.raises(ConnectionError, match="other/set is neither on the hub nor in its cache"):
        hub.load("other/set", "de", "en")
    assert len(silent_hub) == asked


def test_what_is_cached_is_used_when_the_hub_is_silent(silent_hub, served, monkeypatch):
    served(f"return {{'test': [{GOOD}]}}")
    monkeypatch.delenv("HF_HUB_OFFLINE")
    assert load_parallel("some/set") == {"test": [(GOOD["de"], GOOD["en"])]}


def test_a_folder_of_another_format_needs_no_hub(tmp_path, silent_hub):
    pytest.importorskip("datasets")
    given, empty = tmp_path / "given", tmp_path / "empty"
    given.mkdir(), empty.mkdir()
    (given / "train.csv").write_text("de,en\nein Hund,a dog\n", encoding="utf-8")
    assert folder.load(given, "de", "en") == {"train": [("ein Hund", "a dog")]}
    with pytest.raises(ValueError, match="holds no data that `datasets` can read"):
        folder.load(empty, "de", "en")
    assert not silent_hub


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("de,en\nein Hund,a dog\neins,zwei,drei\n",
         "train.csv, line 3: 3 columns, but the first line names 2"),
        ("", "train.csv is empty"),
        ("de,en\n", "train.csv holds a first line with names, but no rows"),
        ('de,en\nein Hund,"a dog\n', "train.csv, line 2: a quotation mark is not closed"),
        ("de,en\nein M\xe4dchen,a girl\n".encode("latin-1"),
         "train.csv, line 2: not valid UTF-8 text .it may be Latin-1"),
        ("de,en\nein Hund,a dog\n".encode("utf-16"), "train.csv, line 1: .*begins like UTF-16"),
    ],
)
def test_what_is_wrong_with_a_table_is_said(tmp_path, silent_hub, content, said):
    pytest.importorskip("datasets")
    content = content if isinstance(content, bytes) else content.encode()
    (tmp_path / "train.csv").write_bytes(content)
    refused = "holds no (data that `datasets`|table that) can (be )?read: "
    with pytest.raises(ValueError, match=f"{refused}.*{said}"):
        folder.load(tmp_path, "de", "en")


def test_a_good_table_is_not_blamed_for_a_bad_home_folder(tmp_path, silent_hub, monkeypatch):
    pytest.importorskip("datasets")
    (tmp_path / "train.csv").write_text("de,en\nein Hund,a dog\n", encoding="utf-8")
    monkeypatch.setenv("HF_HOME", "/proc/nowhere")
    with pytest.raises(ConnectionError, match="keeps what it reads in /proc.*set HF_HOME"):
        folder.load(tmp_path, "de", "en")


def test_the_source_that_was_used_is_told(tmp_path, without_datasets, monkeypatch):
    folder = write(tmp_path, train=ROWS)
    assert load_parallel(folder).source == folder
    monkeypatch.setenv("MULTI30K_DIR", folder)
    assert load_parallel("auto").source == "multi30k"
    monkeypatch.delenv("MULTI30K_DIR")
    assert load_parallel("auto").source == "mini"


def test_a_folder_is_the_same_from_wherever_it_is_named(tmp_path, monkeypatch):
    (tmp_path / "my").mkdir()
    (tmp_path / "my" / "train.jsonl").write_text('\ufeff{"de": "Hund", "en": "dog"}\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    found = [load_parallel(name) for name in ("my", "./my/", "~/my", tmp_path / "my")]
    assert {pairs.source for pairs in found} == {str(tmp_path / "my")}
    assert all(pairs["train"] == [("Hund", "dog")] for pairs in found)


def test_without_datasets_a_mistyped_folder_is_named(without_datasets):
    with pytest.raises(ImportError, match="my_foldr is not a folder of .jsonl files; other data"):
        load_parallel("my_foldr")


def test_a_source_is_a_name_or_a_folder():
    with pytest.raises(TypeError, match="source is None; expected a name such as 'multi30k', or a"):
        load_parallel(None, "de", "en")
