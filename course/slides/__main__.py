import sys

from course.slides import main

sys.exit(main())
