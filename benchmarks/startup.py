"""What `import transformer_lib` costs beyond torch."""

import subprocess
import sys

from benchmarks.timing import Row, median

CODE = """
import time
start = time.perf_counter()
import torch
torch_done = time.perf_counter()
import transformer_lib
from transformer_lib import ModelConfig, Transformer, Translator, load_pretrained
print(torch_done - start, time.perf_counter() - torch_done)
"""


def startup_row(rounds: int) -> Row:
    """Seconds in fresh processes: the public names, after torch, and torch alone."""
    taken = []
    for _ in range(rounds + 1):
        command = [sys.executable, "-c", CODE]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        taken.append([float(x) for x in output.split()])
    torch_alone, beyond = map(list, zip(*taken[1:], strict=True))  # the first reads from the disk
    ratios = [a / b for a, b in zip(torch_alone, beyond, strict=True)]
    return Row("importing the library on top of torch", "importing torch", "s", median(beyond),
               median(torch_alone), median(ratios), min(ratios), max(ratios),
               target="below 0.3 s", samples={"ours": beyond, "peer": torch_alone})
