"""Record how one training run learned to translate: the same ten sentences at thirty points.

    python -m recordings.make_film RUN_FOLDER

RUN_FOLDER is a run that kept a checkpoint every 25 updates (keep_checkpoints as many as there are).
Writes book/_static/live/film.json: the run's settings and validation scores, and at each point what
greedy decoding writes for SENTENCES, with the cross-attention of the last layer, mean over its
heads, in bytes (base64, 255 = 1). The sentences are this project's own; the run has seen none.
"""

import argparse
import base64
import json
import sys
from pathlib import Path

import torch

from tools.arguments import folder
from transformer_lib.attention import record_attention
from transformer_lib.config import ModelConfig, from_dict
from transformer_lib.data import load_parallel
from transformer_lib.decoding import greedy_decode
from transformer_lib.models.transformer import Transformer
from transformer_lib.runs import checkpoint
from transformer_lib.runs.files import read_json_lines
from transformer_lib.tokenization import BOS, EOS, encode_source, load_tokenizer

ROOT = Path(__file__).resolve().parents[1]


OUT = ROOT / "book" / "_static" / "live" / "film.json"
SENTENCES = [
    "Zwei Hunde spielen im Schnee.",
    "Ein Mann fährt Fahrrad.",
    "Eine Frau liest ein Buch im Park.",
    "Drei Kinder spielen am Strand Fußball.",
    "Ein kleiner Junge springt ins Wasser.",
    "Eine alte Frau kauft auf dem Markt Gemüse.",
    "Ein Mädchen mit einem roten Hut lacht.",
    "Der Mann, der eine Gitarre hält, singt.",
    "Mehrere Leute warten auf einen Zug.",
    "Ein weißer Hund rennt über eine grüne Wiese.",
]
POINTS = [25, 50, 75, 100, 125, 150, 175, 200, 250, 300, 350, 400, 500, 600, 700, 800, 900, 1000,
          1150, 1300, 1450, 1600, 1800, 2000, 2200, 2400, 2600, 2800, 2900, 3000]


@torch.inference_mode()
def frame(model: Transformer, tokenizer, sentences: list[str]) -> list[dict]:
    """What the model writes for each sentence, and where its last layer looks meanwhile."""
    shown = []
    for ids in encode_source(tokenizer, sentences):
        src = torch.tensor([ids])
        written = greedy_decode(model, src, max_len=24)  # (1, T)
        read = torch.cat([torch.tensor([[BOS]]), written[:, :-1]], dim=1)
        with record_attention(model) as weights:
            model(src, read)
        last = weights[f"decoder.layers.{model.config.n_decoder_layers - 1}.cross_attention"]
        looks = last[0].mean(0)  # (T, S)
        tokens = [token for token in written[0].tolist() if token != EOS]
        shown.append({
            "text": tokenizer.decode(tokens),
            "pieces": [tokenizer.id_to_token(token) for token in written[0].tolist()],
            "attention": base64.b64encode(
                bytes((looks * 255).round().byte().flatten().tolist())).decode(),
        })
    return shown


def where(about: dict) -> dict:
    """What load_parallel needs to read the data of a run again."""
    return {name: about["data"][name] for name in ("source", "src", "tgt")}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=folder)
    run = parser.parse_args().run
    try:
        about = checkpoint.read_config(run)
    except ValueError as error:
        parser.error(str(error))
    learned_from = {source for source, _ in load_parallel(**where(about))["train"]}
    assert not learned_from & {*SENTENCES, *(text[:-1] for text in SENTENCES)}
    tokenizer = load_tokenizer(run / "tokenizer.json")
    model = Transformer(from_dict(ModelConfig, about["model"])).eval()
    entries = read_json_lines(run / "metrics.jsonl")
    validation = [
        {"step": entry["step"], "loss": entry["validation_loss"], "bleu": entry["validation_bleu"]}
        for entry in entries
        if "validation_bleu" in entry and "averaged" not in entry
    ]
    frames = []
    for step in POINTS:
        path = run / "checkpoints" / f"step-{step:07d}" / "model.safetensors"
        checkpoint.load_state(model, checkpoint.load_weights(path), path)
        seen = [entry for entry in validation if entry["step"] <= step]
        frames.append({"step": step, "bleu": seen[-1]["bleu"] if seen else None,
                       "sentences": frame(model, tokenizer, SENTENCES)})
        print(step, frames[-1]["sentences"][0]["text"])
    ids = encode_source(tokenizer, SENTENCES)
    film = {
        "model": about["model"],
        "train": about["train"],
        "environment": json.loads((run / "environment.json").read_text("utf8")),
        "validation": validation,
        "sources": [
            {"text": text, "pieces": [tokenizer.id_to_token(token) for token in row]}
            for text, row in zip(SENTENCES, ids, strict=True)
        ],
        "frames": frames,
    }
    OUT.write_text(json.dumps(film, ensure_ascii=False, separators=(",", ":")) + "\n", "utf-8")
    print(f"wrote {OUT.relative_to(ROOT)}, {OUT.stat().st_size / 1024:.0f} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
