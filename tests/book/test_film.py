"""What the page says of the recorded film holds in its file (recordings/make_film.py writes it)."""

import base64
import json
from pathlib import Path

import pytest

FILM = Path(__file__).resolve().parents[2] / "book" / "_static" / "live" / "film.json"


@pytest.fixture(scope="module")
def film():
    return json.loads(FILM.read_text(encoding="utf-8"))


def texts(frame):
    return [sentence["text"] for sentence in frame["sentences"]]


def test_first_one_word_then_any_caption_then_the_one_asked_for(film):
    first, last = texts(film["frames"][0]), texts(film["frames"][-1])
    assert len(set(" ".join(first).split())) == 1, "the most frequent word, again and again"
    # Captions that fit any picture: whole sentences, but the dogs in the snow are not yet there.
    between = [frame for frame in film["frames"] if 100 < frame["step"] < 175]
    assert all(texts(frame)[0].endswith(".") and "dog" not in texts(frame)[0] for frame in between)
    assert "dogs" in last[0] and "snow" in last[0] and len(set(last)) == len(last)
    assert film["validation"][-1]["bleu"] > 10 * film["validation"][0]["bleu"]


def test_every_frame_is_whole(film):
    assert len(film["frames"]) == 30 and len(film["sources"]) == 10
    for frame in film["frames"]:
        for source, sentence in zip(film["sources"], frame["sentences"], strict=True):
            size = len(base64.b64decode(sentence["attention"]))
            assert size == len(source["pieces"]) * len(sentence["pieces"])
