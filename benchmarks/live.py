"""How fast the live page's engine is, in headless Chromium: python -m benchmarks.live.

For each job, with the processor as it is and slowed to a quarter: milliseconds a sentence by the
clock, and milliseconds of the processor's time, which other programs do not lengthen. The engine
runs in the page itself here and not in a worker, for Chromium slows only the page's own thread.
"""

import argparse
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.browser import open_page
from transformer_lib.data import load_parallel

JOBS = {
    "greedy": "inside.translate(text, { attention: false })",
    "greedy and its attention": "inside.translate(text)",
    "beam 5": "inside.translate(text, { method: 'beam', attention: false })",
    "head scan": "await inside.headScan(text)",
    "ten updates of the toy task": "for (let i = 0; i < 10; i++) run.step()",
}
START = """
const { Inside } = await import('/inside.js');
const bytes = await (await fetch('/multi30k-de-en.bin')).arrayBuffer();
window.inside = await Inside.open(bytes);
window.run = new (await import('/train_run.js')).Run();
for (let i = 0; i < 30; i++) run.step();
for (const text of args.texts) inside.translate(text, { method: 'beam' });  // let it be compiled
"""


def measure(page, job: str, sentences: list[str]) -> tuple[list[float], list[float]]:
    """Milliseconds of each sentence: by the clock, and of the processor's time."""
    clock, processor = [], []
    body = f"const [text, began] = [args.text, performance.now()]; {JOBS[job]};"
    for text in sentences:
        before = thread_seconds(page.driver)
        clock.append(page.run(body + "return performance.now() - began;", text=text))
        processor.append(1000 * (thread_seconds(page.driver) - before))
    return clock, processor


def thread_seconds(driver) -> float:
    """What the page's thread has taken of the processor."""
    metrics = driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return next(metric["value"] for metric in metrics if metric["name"] == "ThreadTime")


def main(n: int) -> None:
    sentences = [pair[0] for pair in load_parallel("auto", "de", "en")["test"][:n]]
    with tempfile.TemporaryDirectory() as profile, open_page(Path(profile)) as page:
        page.driver.execute_cdp_cmd("Performance.enable", {})
        page.run(START, texts=sentences[:5])
        for rate in (1, 4):
            page.driver.execute_cdp_cmd("Emulation.setCPUThrottlingRate", {"rate": rate})
            for job in JOBS:
                few = sentences[: -(-n // 10)] if job == "head scan" else sentences
                clock, processor = measure(page, job, few)
                print(
                    f"speed 1/{rate}  {job:25}{median(clock):7.0f} ms by the clock (at most "
                    f"{max(clock):.0f}), {median(processor):.0f} ms of the processor "
                    f"(at most {max(processor):.0f}), {len(few)} sentences"
                )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sentences", type=int, default=20)
    main(parser.parse_args().sentences)
