"""Model cards of the recorded runs, in the form of the Hugging Face hub.

    python -m tools.model_cards     # writes results/<run>/README.md

Each run folder of results/ that has weights gets a README.md: a YAML header that the hub reads
(language, licence, data, metrics with their values) and what a user should know. Every number comes
from the run's own files; `--check` names the cards that no longer agree with them, and a test does
the same.
"""

import argparse
import json
import sys
from pathlib import Path

import yaml

from tools.setup_cell import ROOT, repository_url

LANGUAGES = {"de": "German", "en": "English"}
TEMPLATE = Path(__file__).with_name("model_card.md")
METRICS = {"bleu": "BLEU", "chrf": "chrF", "ter": "TER"}


def read(folder: Path, name: str) -> dict:
    return json.loads((folder / name).read_text(encoding="utf8"))


def n_parameters(folder: Path) -> int:
    """Numbers in the weights, from the header of the file."""
    with open(folder / "model.safetensors", "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    shapes = [entry["shape"] for name, entry in header.items() if name != "__metadata__"]
    total = 0
    for shape in shapes:
        count = 1
        for size in shape:
            count *= size
        total += count
    return total


def header(folder: Path, config: dict, scores: dict) -> dict:
    """What the hub reads: https://huggingface.co/docs/hub/model-cards."""
    src, tgt = config["data"]["src"], config["data"]["tgt"]
    results = [
        {
            "type": kind, "value": round(scores[kind], 2), "name": name,
            "args": {"signature": scores["signature"].split("; ")[i]},
        }
        for i, (kind, name) in enumerate(METRICS.items())
    ]
    return {
        "language": [src, tgt],
        "license": "mit",
        "library_name": "transformer-lib",
        "pipeline_tag": "translation",
        "datasets": ["bentrevett/multi30k"],
        "metrics": ["bleu", "chrf", "ter"],
        "tags": ["translation", "transformer", "education"],
        "model-index": [{
            "name": folder.name,
            "results": [{
                "task": {"type": "translation", "name": f"{src} to {tgt}"},
                "dataset": {"name": "Multi30k, test2016", "type": "bentrevett/multi30k",
                            "split": "test", "config": f"{src}-{tgt}"},
                "metrics": results,
            }],
        }],
    }


def card(folder: Path) -> str:
    """The card of a run. Raises KeyError or FileNotFoundError where the run lacks what it says."""
    config, scores = read(folder, "config.json"), read(folder, "scores.json")
    about, seeds = read(folder, "environment.json"), None
    if (folder / "seeds.json").exists():
        seeds = read(folder, "seeds.json")
    model, train, data = config["model"], config["train"], config["data"]
    source, target = LANGUAGES[data["src"]], LANGUAGES[data["tgt"]]
    minutes = about["training_seconds"] / 60
    size = (folder / "model.safetensors").stat().st_size / 1e6
    seed_line = ""
    if seeds and seeds["test_bleu"]["sd"] is not None:
        test = seeds["test_bleu"]
        seed_line = (
            f"\n\nOver {len(seeds['seeds'])} seeds BLEU is {test['mean']:.1f} ± {test['sd']:.1f} "
            "(mean and standard deviation). These weights are the seed with the best validation "
            "score."
        )
    front = yaml.safe_dump(header(folder, config, scores), sort_keys=False, allow_unicode=True,
                           width=1000)
    norm = "pre-norm" if model["norm_first"] else "post-norm"
    tied = "one matrix for source, target and output" if model["tie_embeddings"] else (
        "separate matrices for source, target and output")
    return TEMPLATE.read_text(encoding="utf8").format(
        front=front, name=folder.name, source=source, target=target, repository=repository_url(),
        example=EXAMPLES[data["src"]], megabytes=f"{size:.1f}", tokenizer=data["tokenizer"],
        vocabulary=f"{data['vocab_size']:,}", encoder=model["n_encoder_layers"],
        decoder=model["n_decoder_layers"], d_model=model["d_model"], heads=model["n_heads"],
        d_ff=model["d_ff"], norm=norm, positions=model["positional"],
        activation=model["activation"], tied=tied, millions=f"{n_parameters(folder) / 1e6:.2f}",
        updates=f"{train['max_steps']:,}", tokens=f"{train['max_tokens']:,}",
        rate=f"{train['peak_lr']:g}", dropout=f"{model['dropout']:g}",
        smoothing=f"{train['label_smoothing']:g}", averaged=train["average"],
        minutes=f"{minutes:.0f}", device=about["device"], torch=about["torch"],
        sentences=f"{scores['sentences']:,}", beam=scores["beam_size"],
        penalty=f"{scores['length_penalty']:g}", bleu=f"{scores['bleu']:.1f}",
        chrf=f"{scores['chrf']:.1f}", ter=f"{scores['ter']:.1f}", lowercased=lowercased(scores),
        signature=scores["signature"].split("; ")[0], seeds=seed_line,
    )


EXAMPLES = {"de": "Zwei Hunde spielen im Schnee.", "en": "Two dogs are playing in the snow."}


def lowercased(scores: dict) -> str:
    found = scores.get("lowercased_tokenised_bleu")
    return f"{found:.1f}" if found is not None else "not measured"


def runs(root: Path = ROOT) -> list[Path]:
    """The recorded runs that have weights."""
    return sorted(path.parent for path in (root / "results").glob("*/model.safetensors"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="exit with 1 if a card is stale")
    options = parser.parse_args()
    stale = 0
    for folder in runs():
        path, text = folder / "README.md", card(folder)
        if path.exists() and path.read_text(encoding="utf8") == text:
            continue
        stale += 1
        print(f"{path.relative_to(ROOT)} {'is stale' if options.check else 'written'}")
        if not options.check:
            path.write_text(text, encoding="utf8")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
