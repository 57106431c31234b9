"""How fast the built pages show themselves on a phone, as Lighthouse judges it.

    python -m benchmarks.lighthouse --site _build/html

Lighthouse slows the processor four times and the link to 1.6 Mbit/s. It counts what the processor
does, so run it on an idle machine: beside other work, the same page loses thirty points. Needs
Node.js (`npx` fetches Lighthouse) and Chromium.
"""

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.browser import CHROMIUM, Quiet, served
from tools.arguments import count, folder

LIGHTHOUSE = "lighthouse@12.8.2"
LEAST = 90  # of 100, the median of the rounds
MOST_SHIFT = 0.05  # of the layout, in any round
# The landing page, the one with the model in it, two chapters with many charts.
PAGES = ("index.html", "book/translator.html", "book/03_masks.html", "book/17_evaluation.html")
SHOWN = ("first-contentful-paint", "largest-contentful-paint", "total-blocking-time",
         "cumulative-layout-shift")
TEXT = (".html", ".js", ".css", ".json", ".svg")


class Compressed(Quiet):
    """The files of a folder, text compressed, as hosts of static pages send it."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() else path
        if not path.is_file():
            return self.send_error(404)
        body = path.read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        if path.suffix in TEXT and "gzip" in self.headers.get("Accept-Encoding", ""):
            body = gzip.compress(body)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def judge(url: str) -> dict:
    """One visit: {"score": 0 to 100, "shift": 0.01, "first-contentful-paint": "1.2 s", ...}."""
    with tempfile.TemporaryDirectory() as there:
        report = Path(there) / "report.json"
        subprocess.run(
            ["npx", "--yes", LIGHTHOUSE, url, "--quiet", "--only-categories=performance",
             "--chrome-flags=--headless=new --no-sandbox --disable-gpu", "--output=json",
             f"--output-path={report}"],
            check=True, env=os.environ | {"CHROME_PATH": CHROMIUM},
        )
        found = json.loads(report.read_text(encoding="utf8"))
    score = found["categories"]["performance"]["score"]
    if score is None:
        raise RuntimeError(f"Lighthouse could not judge {url}: {found.get('runtimeError')}")
    audits = found["audits"]
    shift = audits["cumulative-layout-shift"]["numericValue"]
    shown = {name: audits[name]["displayValue"] for name in SHOWN}
    return shown | {"score": round(100 * score), "shift": shift}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.lighthouse", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--site", type=folder, default=Path("_build/html"))
    parser.add_argument("--rounds", type=count, default=3, help="visits of each page (%(default)s)")
    args = parser.parse_args(arguments)
    for tool, there in (("Node.js with npx", shutil.which("npx")), ("Chromium", CHROMIUM)):
        if not there:
            parser.error(f"{tool} is needed and isn't here")
    slow = []
    with served(args.site, Compressed) as address:
        for page in PAGES:
            visits = [judge(f"{address}/{page}") for _ in range(args.rounds)]
            visit = sorted(visits, key=lambda one: one["score"])[len(visits) // 2]  # the median
            scores = ", ".join(str(one["score"]) for one in visits)
            print(f"{page}: {visit['score']} of 100 ({scores}); "
                  + ", ".join(f"{name} {visit[name]}" for name in SHOWN), flush=True)
            if visit["score"] < LEAST or max(one["shift"] for one in visits) >= MOST_SHIFT:
                slow.append(page)
    if slow:
        print(f"Below {LEAST}, or moving by {MOST_SHIFT} and more: {', '.join(slow)}")
    return bool(slow)


if __name__ == "__main__":
    sys.exit(main())
