"""``python -m armid``: the command line."""

import sys

from armid.cli import main

sys.exit(main())
