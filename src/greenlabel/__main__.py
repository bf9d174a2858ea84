"""`python -m greenlabel` and the script `greenlabel`: the command line, in a process of its own."""

import gc
import signal
import time


def main() -> None:
    """Run the command line; Ctrl-C is silent at any moment, of the imports and of the end too."""
    began = time.perf_counter()
    try:
        from greenlabel._common.process import leave, loading

        with loading():
            from greenlabel.cli import main as run
        gc.disable()  # until a command has loaded what it needs: help and refusals leave before that
        try:
            run(began)
        finally:
            signal.signal(signal.SIGINT, leave)  # libraries that end hold nothing either
    except KeyboardInterrupt:
        raise SystemExit(128 + signal.SIGINT) from None


if __name__ == "__main__":
    main()
