"""python -m transformer_lib: see transformer_lib.cli."""

import sys

if __name__ == "__main__":
    try:
        from transformer_lib.cli import main

        sys.exit(main())
    except KeyboardInterrupt:  # while the modules are loading
        sys.exit(130)
