"""``python -m armid``: the command line."""

import signal
import sys


def main() -> int:
    """Run the command line; an interruption while it is loaded ends it without a word."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from armid.cli import main

    signal.signal(signal.SIGINT, signal.default_int_handler)
    return main()


if __name__ == "__main__":
    sys.exit(main())
