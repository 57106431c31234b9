"""Multi30k's loss is survivable: mirrors in order, checksums, the mini corpus at the end."""

import gzip
import os

import pytest

from transformer_lib.corpora import hub, multi30k
from transformer_lib.corpora.cache import cache_dir
from transformer_lib.data import load_parallel

SPLITS = {
    "train": [("ein Hund", "a dog"), ("zwei Hunde", "two dogs")],
    "validation": [("eine Katze", "a cat")],
    "test": [("drei Katzen", "three cats")],
}


def mirror(folder, splits=SPLITS) -> str:
    """A mirror on disk, as an address."""
    folder.mkdir()
    for split, rows in splits.items():
        for language, texts in zip(("de", "en"), zip(*rows, strict=True), strict=True):
            content = "".join(text + "\n" for text in texts).encode()
            (folder / f"{multi30k.FILES[split]}.{language}.gz").write_bytes(gzip.compress(content))
    return folder.as_uri()


def no_hub(name, src, tgt):
    raise ConnectionError(f"{name} is neither on the hub nor in its cache")


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """No folder, no hub, an empty cache, and the checksums of SPLITS."""
    monkeypatch.delenv("MULTI30K_DIR", raising=False)
    monkeypatch.setattr(hub, "load", no_hub)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    known = {
        (split, language): multi30k.checksum([row[column] for row in rows])
        for split, rows in SPLITS.items()
        for column, language in enumerate(("de", "en"))
    }
    monkeypatch.setattr(multi30k, "CHECKSUMS", known)
    return lambda *mirrors: monkeypatch.setattr(multi30k, "MIRRORS", mirrors)


def test_mirrors_are_tried_in_order(bare, tmp_path, capsys):
    changed = SPLITS | {"test": [("drei Hunde", "three cats")]}
    nowhere = (tmp_path / "nowhere").as_uri()
    bare(nowhere, mirror(tmp_path / "changed", changed), mirror(tmp_path / "whole"))
    pairs = load_parallel("auto")
    assert pairs == SPLITS and pairs.source == "multi30k"
    assert "Multi30k from a mirror" in capsys.readouterr().out


def test_what_is_wrong_with_each_mirror_is_said(bare, tmp_path):
    changed = SPLITS | {"test": [("drei Hunde", "three cats")]}
    cut = tmp_path / "cut"
    addresses = (tmp_path / "nowhere").as_uri(), mirror(tmp_path / "changed", changed), mirror(cut)
    half = cut / "train.de.gz"
    half.write_bytes(half.read_bytes()[:-9])
    bare(*addresses)
    with pytest.raises(ConnectionError) as caught:
        load_parallel("multi30k")
    nowhere, other, broken = str(caught.value).split("file://")[1:4]
    assert "nowhere" in nowhere and "No such file" in str(caught.value)
    assert "other sentences than expected in test.de" in other
    assert "ended before" in broken


@pytest.mark.parametrize(
    "damage",
    [b"", b"\x1f\x8b\x08" + bytes(7) + b"\xff" * 20, b"<html>", gzip.compress(b"\xff\xfe")],
    ids=["empty", "garbled", "a web page", "not UTF-8"],
)
def test_a_damaged_mirror_is_passed_over(bare, tmp_path, damage):
    folder = tmp_path / "damaged"
    bare(mirror(folder), mirror(tmp_path / "whole"))
    (folder / "train.de.gz").write_bytes(damage)
    assert load_parallel("multi30k") == SPLITS


def test_a_failed_request_does_not_lose_what_is_kept(bare, tmp_path):
    bare(mirror(tmp_path / "mirror"))
    load_parallel("multi30k")
    kept = sorted(cache_dir("multi30k").rglob("*.gz"))
    with pytest.raises(ConnectionError):
        multi30k.from_mirrors("de", "xx")
    assert sorted(cache_dir("multi30k").rglob("*.gz")) == kept and len(kept) == 6


def test_without_a_place_to_keep_it_the_data_is_used(bare, tmp_path, monkeypatch):
    (tmp_path / "a-file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a-file"))
    bare(mirror(tmp_path / "mirror"))
    assert load_parallel("multi30k") == SPLITS


def test_with_every_mirror_lost_the_mini_corpus_remains(bare, tmp_path, capsys):
    bare((tmp_path / "nowhere").as_uri())
    assert load_parallel("auto").source == "mini"
    assert "Multi30k is not available" in capsys.readouterr().out


def test_a_mirror_is_asked_once_and_damage_is_not_kept(bare, tmp_path, monkeypatch):
    folder = tmp_path / "mirror"
    bare(mirror(folder, SPLITS | {"test": [("kaputt", "broken")]}))
    with pytest.raises(ConnectionError):
        load_parallel("multi30k")
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    mirror(folder)  # mended at its source: the damaged copy must not be what is found
    assert load_parallel("multi30k") == SPLITS
    monkeypatch.setattr(multi30k, "urlopen", None)  # from now on only the cache answers
    assert load_parallel("multi30k") == SPLITS
    assert not list(cache_dir("multi30k").rglob("*.partial"))


def test_other_sentences_in_a_folder_are_used_but_named(bare, tmp_path, monkeypatch, capsys):
    lines = [f'{{"de": "{de}", "en": "{en}"}}\n' for de, en in SPLITS["train"]]
    (tmp_path / "train.jsonl").write_text("".join(lines), encoding="utf-8")
    monkeypatch.setenv("MULTI30K_DIR", str(tmp_path))
    load_parallel("multi30k")
    assert "Not the sentences" not in capsys.readouterr().out
    (tmp_path / "train.jsonl").write_text(lines[0], encoding="utf-8")
    load_parallel("multi30k")
    assert "Not the sentences of the recorded runs: train.de, train.en" in (
        capsys.readouterr().out
    )


def test_the_recorded_checksums_are_those_of_the_data_at_hand():
    if not os.environ.get("MULTI30K_DIR"):
        pytest.skip("needs Multi30k: set MULTI30K_DIR")
    for src, tgt in (("de", "en"), ("en", "de")):
        assert not multi30k.differences(load_parallel("multi30k", src, tgt), src, tgt)
