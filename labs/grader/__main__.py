import sys

from .grade import main

sys.exit(main())
