"""One recipe: the notebook, the command and the record train by the same settings."""

import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

from transformer_lib import ModelConfig, TrainConfig, Transformer, data, tokenization, training
from transformer_lib.cli import main
from transformer_lib.cli.options import NOT_OFFERED, fields_of, parsers
from transformer_lib.cli.training import recipe_options
from transformer_lib.runs import recipes
from transformer_lib.runs.pretrained import results_dir, run_info

ROOT = Path(__file__).resolve().parents[1]
NAMES = [*recipes.RECIPES, "multi30k-de-en"]
TINY = {"d_model": 16, "n_heads": 2, "d_ff": 16, "n_encoder_layers": 1, "n_decoder_layers": 1}
BRIEF = {"max_steps": 4, "max_tokens": 256, "warmup": 2, "cooldown": 2, "checkpoint_every": 2,
         "validate_every": 4, "validation_bleu": False, "fast": False}


@pytest.fixture(scope="module")
def mini():
    pairs = data.load_parallel("mini")
    return data.Pairs({"train": pairs["train"][:200], "validation": pairs["validation"][:5],
                       "test": pairs["test"][:5]}, "mini")


@pytest.fixture
def small(monkeypatch, mini):
    """The short recipe in seconds, on a few pairs."""
    recipe = recipes.smaller(recipes.SHORT, TINY, BRIEF, 200)
    monkeypatch.setitem(recipes.RECIPES, "short", replace(recipe, name="short"))
    monkeypatch.setattr(data, "load_parallel", lambda *_: mini)
    return recipes.find("short")


@pytest.mark.parametrize("name", NAMES)
def test_the_command_trains_by_the_recipe(name):
    recipe = recipes.find(name)
    parser, train = parsers()
    train.set_defaults(**recipe_options(name, own_batches=False))
    options = parser.parse_args(["train"])
    assert TrainConfig(**fields_of(TrainConfig, options)) == recipe.train
    vocab_size = recipe.data["vocab_size"]
    built = ModelConfig(vocab_size, **fields_of(ModelConfig, options, NOT_OFFERED))
    assert built == recipe.model_config(vocab_size)
    given = {key: getattr(options, "data" if key == "source" else key) for key in recipe.data}
    assert given == recipe.data


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_says_nothing_of_the_machine(name):
    train = recipes.find(name).train
    assert train.device == train.precision == "auto"


def notebook(*ids):
    """The sources of cells of the chapter."""
    page = json.loads((ROOT / "book" / "16_training_on_multi30k.ipynb").read_text("utf-8"))
    cells = {cell["id"]: "".join(cell["source"]) for cell in page["cells"]}
    return [cells[i] for i in ids]


@pytest.mark.parametrize("size", ["cpu", "full"])
def test_the_notebook_trains_by_the_recipe(size, monkeypatch, mini):
    """Its own cells, with other pairs; what `train` would be given is what the recipe says."""
    monkeypatch.setenv("BOOK_SCALE", size)
    monkeypatch.setattr(data, "load_parallel", lambda *_: mini)
    given = {}

    def train(model, tokenizer, pairs, config, run_dir, on_log, data_info):
        given.update(model=model.config, train=config, data=data_info)

    space = {"film": {"sources": []}, "flops": 1.0, "peak": 1.0}
    first, folder, machinery, launch = notebook("2ce75d18", "run-folder", "watch-run", "10c70187")
    for cell in [first, *notebook("44950b45", "recipe-small", "3870b0de"), folder]:
        exec(cell, space)
    space["train"] = train
    exec(machinery, space)
    exec(launch, space)
    recipe = recipes.find("short")
    assert space["recipe"] == recipe and 'recipes.find("short")' in notebook("44950b45")[0]
    vocab_size = space["tokenizer"].get_vocab_size()
    assert given["model"] == recipe.model_config(vocab_size)
    shown = {"progress": True, "log_every": 20}  # what is only seen differs
    assert replace(given["train"], **shown) == replace(recipe.train, **shown)
    assert given["data"] == recipe.data | {"source": "mini"}


def test_the_notebook_and_the_command_train_one_run(small, mini, tmp_path):
    """The same files, and each goes on with the other's folder."""
    texts = [text for pair in mini["train"] for text in pair]
    tokenizer = tokenization.train_tokenizer(texts, small.data["vocab_size"])
    training.set_seed(small.train.seed)
    model = Transformer(small.model_config(tokenizer.get_vocab_size()))
    page, command = tmp_path / "page", tmp_path / "command"
    training.train(model, tokenizer, mini, small.train, page, data_info=small.data_info(mini))
    options = ["train", "--recipe", "short", "--data", "mini", "--no-progress"]
    assert main([*options, "--run", str(command)]) == 0
    same = {"model.safetensors", "tokenizer.json"}
    assert all((page / name).read_bytes() == (command / name).read_bytes() for name in same)
    said = [json.loads((folder / "config.json").read_text()) for folder in (page, command)]
    assert said[0]["train"].pop("progress") != said[1]["train"].pop("progress")
    assert said[0] == said[1]
    before = (page / "metrics.jsonl").read_bytes()
    assert main([*options, "--run", str(page)]) == 0  # it finds the run done
    assert (page / "metrics.jsonl").read_bytes() == before


def test_the_record_of_a_run_is_its_own():
    recipe = recipes.find("multi30k-de-en")
    assert recipes.differences(recipe, run_info("multi30k-de-en")) == []
    found = recipes.record(recipe)
    assert found.metrics[-1]["step"] == recipe.train.max_steps
    assert found.environment["training_seconds"] > 0


def test_a_record_of_other_settings_is_none():
    """The film's run is the record of the recipe that it was trained by, and of no other."""
    film = json.loads(recipes.FILM.read_text("utf-8"))
    names = {field.name for field in fields(TrainConfig)} - recipes.WATCHING
    known = {name: value for name, value in film["train"].items() if name in names}
    model = {name: value for name, value in film["model"].items() if name not in
             recipes.NOT_CHOSEN}
    train = TrainConfig(**known | {"fast": True})
    recipe = recipes.Recipe("film", recipes.SHORT.data, model, train)
    found = recipes.record(recipe)
    assert found.metrics[-1]["step"] == train.max_steps
    assert recipes.record(replace(recipe, train=replace(train, seed=5, precision="fp32"))) == found
    for other in (
        replace(recipe, train=replace(train, peak_lr=4e-3)),
        replace(recipe, model=model | {"d_ff": 512}),
        replace(recipe, data=recipe.data | {"vocab_size": 4000}),
    ):
        assert recipes.record(other) is None


@pytest.mark.parametrize(("train", "told"), [
    ({"peak_lr": 1e-3}, ["peak_lr 0.004, not 0.001"]), ({"seed": 4}, []),
    ({"precision": "fp32"}, []),
    ({"max_steps": 9, "cooldown": 0}, ["max_steps 6250, not 9", "cooldown 1500, not 0"]),
    ({"checkpoint_every": 50}, ["checkpoint_every 250, not 50"]),  # of which five are averaged
])
def test_differences_are_named(train, told):
    recipe = recipes.find("multi30k-de-en")
    recipe = replace(recipe, train=replace(recipe.train, **train))
    assert recipes.differences(recipe, run_info("multi30k-de-en")) == told


SHIPPED = sorted(path.parent.name for path in results_dir().glob("*/config.json"))


@pytest.mark.parametrize("name", SHIPPED)
def test_every_recorded_run_can_be_trained_again(name, capsys):
    """Today's code knows each of its settings, and the command takes them."""
    config = json.loads((results_dir() / name / "config.json").read_text(encoding="utf-8"))
    assert not recipes.differences(recipes.find(name), config)
    assert set(config["train"]) <= {field.name for field in fields(TrainConfig)}
    options = parsers()[0].parse_args(["train", "--like", name])
    assert options.like == name and recipe_options(name, own_batches=False)["max_steps"]


def test_what_is_no_recipe_is_named():
    with pytest.raises(ValueError, match="no trained run 'shorter'.*Recipes by name: short"):
        recipes.find("shorter")


@pytest.mark.parametrize(("key", "value", "message"), [
    ("source", [1], "'source' of its 'data' is .1.; expected a string"),
    ("src", 3, "'src' of its 'data' is 3; expected a string"),
    ("tgt", None, "'tgt' of its 'data' is None; expected a string"),
    ("vocab_size", "big", "'vocab_size' of its 'data' is 'big'; expected a whole number"),
    ("vocab_size", True, "'vocab_size' of its 'data' is True; expected a whole number"),
    ("tokenizer", "char", "names the tokenizer 'char', which no command trains; expected 'bpe' or"),
])
def test_a_recipe_whose_data_is_damaged_names_the_run(key, value, message, tmp_path):
    about = json.loads((results_dir() / "multi30k-de-en-short" / "config.json").read_text())
    about["data"][key] = value
    (tmp_path / "config.json").write_text(json.dumps(about))
    with pytest.raises(ValueError, match=f"{tmp_path}/config.json .*{message}"):
        recipes.find(tmp_path)


def test_an_empty_results_dir_is_none(monkeypatch):
    here = results_dir()
    monkeypatch.setenv("RESULTS_DIR", "")
    assert results_dir() == here


def test_recipe_and_like_exclude_each_other(capsys):
    with pytest.raises(SystemExit):
        main(["train", "--recipe", "short", "--like", "multi30k-de-en"])
    assert "not allowed with argument" in capsys.readouterr().err
