"""Small models, and the same random numbers in every run."""

import functools
import os
import re
import signal
import socket
import stat
import sys
import threading
import time
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from transformer_lib import ModelConfig, Transformer
from transformer_lib.corpora import hub, multi30k

# The examples are the same in every run: a failure here is a failure everywhere.
settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("repeatable")

HAS_GPU = torch.cuda.is_available() or torch.backends.mps.is_available()

TINY = dict(
    vocab_size=20, d_model=16, n_heads=4, d_ff=24, n_encoder_layers=2, n_decoder_layers=2,
    dropout=0.0, max_len=40,
)


# What these test can't be had on Windows. There they are skipped, and the summary says why.
UNIX_ONLY = {
    "test_checks_mutants": "limits the processor time of a child",
    "test_distributed": "ends processes by SIGKILL",
    "test_every_operation": "forks at each change of a file",
    "test_experiments": "interrupts child processes as Ctrl-C does",
    "test_gpu_command": "interrupts child processes as Ctrl-C does",
    "test_lock": "ends processes by SIGKILL",
    "test_own": "limits the processor time of a child",
    "test_power_cut": "syncs folders to the disk",
    "test_resume": "forks, and limits the size of files",
}


class OnUnix(pytest.Module):
    """A module of tests that is not even imported here."""

    def collect(self):
        reason = UNIX_ONLY[self.path.stem]
        pytest.skip(f"needs Linux or macOS: {reason}", allow_module_level=True)


def pytest_pycollect_makemodule(module_path, parent):
    if sys.platform == "win32" and module_path.stem in UNIX_ONLY:
        return OnUnix.from_parent(parent, path=module_path)


# ---- `make check`: quick tests only, and of a test with many cases some of them ----------------

SLOW = Path(__file__).with_name("slow.txt")


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="leave out the functions of slow.txt")
    said = "of a test with more cases than N run N, evenly spaced"
    parser.addoption("--cases", type=int, metavar="N", help=said)


@functools.cache
def slow_tests() -> frozenset[str]:
    """test_file.py::test_function of everything that is too slow for `make check`."""
    return frozenset(SLOW.read_text(encoding="utf8").split())


def pytest_pycollect_makeitem(collector, name):
    """Of a slow test not even the cases are made, of which there may be thousands."""
    if collector.config.getoption("--quick") and name.startswith("test_"):
        here = collector.path.relative_to(SLOW.parent).as_posix()
        return [] if f"{here}::{name}" in slow_tests() else None


def pytest_ignore_collect(collection_path, config):
    """A file that has slow tests only is not even imported."""
    if not config.getoption("--quick") or collection_path.suffix != ".py":
        return None
    here = collection_path.relative_to(SLOW.parent).as_posix()
    tests = re.findall(r"^def (test_\w+)", collection_path.read_text(encoding="utf8"), re.MULTILINE)
    return True if tests and {f"{here}::{name}" for name in tests} <= slow_tests() else None


def spread(items: list, n: int) -> list:
    """n of the items, evenly spaced, the first and the last among them; all, if they are fewer."""
    if len(items) <= n:
        return items
    return [items[i * (len(items) - 1) // max(n - 1, 1)] for i in range(n)]


def pytest_collection_modifyitems(config, items):
    most, cases = config.getoption("--cases"), {}
    if not most:
        return
    for item in items:
        cases.setdefault((item.path, item.originalname), []).append(item)
    kept = {item for several in cases.values() for item in spread(several, most)}
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


@pytest.fixture(autouse=True, scope="session")
def ctrl_c_is_heard():
    """A shell starts what runs in the background with SIGINT ignored, and children inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def null_device_stays():
    """Whoever tests as root, as in a container, could replace /dev/null for the whole machine."""
    yield
    assert os.name == "nt" or stat.S_ISCHR(os.stat(os.devnull).st_mode), (
        "this test has replaced /dev/null: rm /dev/null; mknod -m 666 /dev/null c 1 3"
    )


@pytest.fixture(autouse=True)
def seeded():
    """Without a GPU not by torch.manual_seed, which writes down who called it: 2 ms a test."""
    (torch.manual_seed if HAS_GPU else torch.default_generator.manual_seed)(0)


@pytest.fixture(autouse=True)
def no_downloads(monkeypatch):
    """A test takes what is on this machine, so that it does the same everywhere."""
    monkeypatch.setattr(multi30k, "MIRRORS", ())


# ---- pages in headless Chromium; their tests skip where there is none --------------------------

@pytest.fixture(scope="module")
def address(request):
    """Where the module's SERVED is: a folder, its handler, and the path below which it lies."""
    folder, handler, *prefix = request.module.SERVED
    from benchmarks.browser import served

    with served(folder, handler) as server:
        yield f"{server}{''.join(prefix)}/"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from benchmarks.browser import start_chromium

    driver = start_chromium(tmp_path_factory.mktemp("chromium"))
    driver.set_page_load_timeout(60)
    driver.set_script_timeout(120)  # axe reads the whole of a long page
    yield driver
    driver.quit()


# ---- a hub -------------------------------------------------------------------------------------

class SilentHub(list):
    """The connections to a hub on this machine that accepts each one and never says a word."""

    def __init__(self, server):
        super().__init__()
        self.server, self.times = server, []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                self.append(self.server.accept()[0])
            except OSError:  # the test is over
                return
            self.times.append([time.monotonic(), None])
            threading.Thread(target=self.listen, args=[len(self) - 1], daemon=True).start()

    def listen(self, number):
        try:
            while self[number].recv(4096):
                pass
        except OSError:
            pass
        self.times[number][1] = time.monotonic()

    def seconds(self) -> float:
        """How long somebody waited for a word: what else a busy machine takes is left out."""
        return sum((end or time.monotonic()) - start for start, end in self.times)


@pytest.fixture
def silent_hub(monkeypatch, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        hub_here = SilentHub(server)
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.getsockname()[1]}")
        monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
        monkeypatch.setattr(hub, "_silent_hubs", set())
        monkeypatch.setattr(hub, "PATIENCE", 1)
        yield hub_here
        server.shutdown(socket.SHUT_RDWR)
    for connection in hub_here:
        connection.close()


def tiny_config(**changes) -> ModelConfig:
    """Sizes at which a model runs in a millisecond."""
    return ModelConfig(**(TINY | changes))


def tiny_model(seed: int = 0, **changes) -> Transformer:
    """A float64 model whose every weight is random, gains and biases of the norms too."""
    torch.manual_seed(seed)
    model = Transformer(tiny_config(**changes))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.2 * torch.randn_like(parameter))
    return model.double().eval()


def random_ids(*shape: int, vocab_size: int = 20, seed: int = 0) -> torch.Tensor:
    """Ids of ordinary tokens: no padding, no special tokens."""
    return torch.randint(4, vocab_size, shape, generator=torch.Generator().manual_seed(seed))


def assert_equal(given, expected, tolerance: float = 1e-9):
    """Equal up to rounding: 1e-9 suits float64, 1e-5 float32."""
    torch.testing.assert_close(given, expected, atol=tolerance, rtol=tolerance)
