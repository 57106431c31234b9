"""What a run is, as its config.json says it, for runs of any age."""

import dataclasses
import json

from transformer_lib.config import ModelConfig, TrainConfig

# Settings that say where a run is computed and how it is watched: the model is the same.
WATCHING = {"device", "progress", "tensorboard", "log_every", "keep_checkpoints"}
# Settings that older runs may hold, with the value that changed nothing.
GONE = {"both_directions": 0, "start_from": None, "teachers": []}
# Settings that came later, where older runs were not trained with today's default.
BEFORE = {"fast": True}


def todays(run: dict, where: str) -> dict:
    """A run's config.json in today's settings.

    A setting that did not exist when it was trained came with a default that changes nothing, or
    stands in BEFORE. Raises ValueError, naming `where`, for one that is gone and changed something:
    such a run can translate, but not be trained again.
    """
    run = {part: dict(v) if isinstance(v, dict) else v for part, v in run.items()}
    for part in ("train", "data"):
        for name in GONE.keys() & run.get(part, {}).keys():
            value = run[part].pop(name)
            if value != GONE[name]:
                raise ValueError(
                    f"{where} was trained with {name} = {value!r}, a setting that is gone: the run "
                    "can translate, but not be trained again."
                )
    for part, cls in (("model", ModelConfig), ("train", TrainConfig)):
        fields = dataclasses.fields(cls)
        defaults = {f.name: f.default for f in fields if f.default is not dataclasses.MISSING}
        known = defaults | (BEFORE if part == "train" else {})
        run[part] = json.loads(json.dumps(known | run.get(part, {})))  # JSON has no tuples
    return run
