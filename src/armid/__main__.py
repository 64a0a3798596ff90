"""``python -m armid``: the command line."""

import signal
import sys


def main() -> int:
    """Run the command line; an interruption while it is loaded, or a second one, ends it without a word."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from armid.cli import main

    signal.signal(signal.SIGINT, signal.default_int_handler)
    code = main()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return code


if __name__ == "__main__":
    sys.exit(main())
