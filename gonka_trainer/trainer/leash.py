"""`python -m gonka_trainer.trainer.leash COMMAND...`: run the command so that it cannot outlive who started it.

The kernel is asked to kill this process when its parent ends, however that ends, and then the command takes this
process over (the request survives exec). One stands before torchrun, with the daemon as parent, and one before each
worker, with torchrun as parent. Imports next to nothing: it runs before every start.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Final

PR_SET_PDEATHSIG: Final = 1
PARENT_VARIABLE: Final = "GONKA_TRAINER_LEASH_PARENT"


def main(command: list[str]) -> int:
    """Hold the command to its parent and become it; an error's exit status is 127, as a shell's is."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        sys.stderr.write(f"leash: prctl: {os.strerror(ctypes.get_errno())}\n")
        return 127
    wanted = os.environ.pop(PARENT_VARIABLE, None)
    if wanted is not None and int(wanted) != os.getppid():
        return 127  # the parent ended before the kernel was asked
    try:
        os.execvp(command[0], command)  # noqa: S606 - no shell is the point
    except OSError as error:
        sys.stderr.write(f"leash: {command[0]}: {error.strerror}\n")
        return 127


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
