"""Write a run as the file that the live page reads: python -m tools.export_live RUN [OUT].

RUN is a name in results/ or a run folder; OUT defaults to book/_static/live/RUN.bin.
"""

import argparse
from pathlib import Path

from tools.arguments import new_file
from transformer_lib.runs.export import export_live

LIVE = Path(__file__).resolve().parents[1] / "book" / "_static" / "live"

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", nargs="?", default="multi30k-de-en")
    parser.add_argument("out", nargs="?", type=new_file)
    options = parser.parse_args()
    out = options.out or LIVE / f"{Path(options.run).name}.bin"
    try:
        header = export_live(options.run, out)
    except ValueError as error:
        raise SystemExit(str(error)) from None
    print(f"{out}: {header['parameters']:,} parameters in {header['bytes']:,} bytes")
