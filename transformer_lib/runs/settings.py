"""What a run is, as its config.json describes it."""

import dataclasses
import json

from transformer_lib.config import ModelConfig, TrainConfig

# Settings that say where a run is computed and how it is watched: the model is the same.
WATCHING = {"device", "progress", "tensorboard", "log_every", "keep_checkpoints"}


def with_current_defaults(run: dict) -> dict:
    """A run's config.json with every field of the current configurations.

    A field that was added after the run was trained has a default that changes nothing.
    """
    run = {part: dict(v) if isinstance(v, dict) else v for part, v in run.items()}
    for part, cls in (("model", ModelConfig), ("train", TrainConfig)):
        fields = dataclasses.fields(cls)
        defaults = {f.name: f.default for f in fields if f.default is not dataclasses.MISSING}
        run[part] = json.loads(json.dumps(defaults | run.get(part, {})))  # JSON has no tuples
    return run
