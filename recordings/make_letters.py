"""Train the two models of letters that the page runs: python -m recordings.make_letters [NAME ...].

Each is trained as the chapter on toy tasks does it, seed 0, 500 updates, and written into
book/_static/live/letters-NAME.weights, in the format of transformer_lib/runs/export.py. A quarter
of a minute each on one core. tests/book/test_letters.py compares them with
results/claims/crossing.json.
"""

import argparse
from pathlib import Path

from recordings.claims.crossing import LOOKS, page
from transformer_lib.runs.export import FIELDS, pack, to_bytes, unique
from transformer_lib.runs.files import write_bytes

LIVE = Path(__file__).resolve().parents[1] / "book" / "_static" / "live"
MODELS = {"reverse": "sinusoidal", "copy": "rotary"}  # task -> positions


def main(names) -> None:
    for task in names:
        model, _ = page.train(task, 0, MODELS[task], None, LOOKS[-1], page.new_model, 0.003)
        table, data = pack(dict(unique(model)))
        header = {
            "name": f"letters-{task}", "src": "letters", "tgt": "letters", "length_penalty": 0,
            "scores": None, "parameters": model.count_parameters(),
            "config": {name: getattr(model.config, name) for name in FIELDS},
            "tokenizer": {"kind": "word", "tokens": page.VOCABULARY, "merges": []},
            "tensors": table,
        }
        path = LIVE / f"letters-{task}.weights"
        write_bytes(path, to_bytes(header, data))
        print(f"{path}: {model.count_parameters():,} parameters, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*MODELS, []], default=[])
    main(parser.parse_args().names or MODELS)
