"""What the log says of time and of randomness."""


import pytest
import torch

from transformer_lib import ModelConfig, Transformer, training
from transformer_lib.runs import progress
from transformer_lib.runs.processes import Processes


@pytest.fixture
def clock(monkeypatch):
    """A clock that moves only when it is told to."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    return now


def test_validation_is_no_time_of_training(clock):
    """The records of speed are made of these seconds."""
    meter = progress.Meter(Processes("cpu"), torch.device("cpu"))
    meter.n_tokens = 500
    clock[0] += 2
    with meter.paused():
        clock[0] += 60
    clock[0] += 3
    entry = meter.entry()
    assert entry["seconds"] == pytest.approx(5) and entry["tokens_per_second"] == pytest.approx(100)


def test_each_process_drops_out_other_units(monkeypatch, tmp_path):
    """The seed of a process is that of the run plus its rank."""
    seeds = []

    class Stop(Exception):
        pass

    def set_seed(seed):
        seeds.append(seed)
        raise Stop

    class Ranked(Processes):
        def __init__(self, device):
            self.rank, self.world = len(seeds), 1
            self.first = True

    monkeypatch.setattr(training, "set_seed", set_seed)
    monkeypatch.setattr(training, "Processes", Ranked)
    batches = training.translation_batches([[4, 2]], [[1, 4, 2]], max_tokens=8, seed=0)
    config = training.TrainConfig(max_steps=1, device="cpu", seed=7)
    model = Transformer(ModelConfig(8, 4, 1, 8, 1, 1))
    for _ in range(3):
        with pytest.raises(Stop):
            training.fit(model, batches, lambda *_: None, config, tmp_path)
    assert seeds == [7, 8, 9]


