"""Notebook kernels that start with torch already imported.

    python -m tools.kernels    makes one for each line of JSON, and answers its pid

Importing them takes one to three seconds of processor, and there are more than a hundred notebooks.
So one process imports them once, and each kernel is a fork of that process. It imports nothing from
this repository, because a kernel has to note which of those files it reads.

Only on Linux can a process be relied on to fork after it has imported such libraries. Elsewhere
each kernel starts from nothing.
"""

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys

from jupyter_client import AsyncKernelManager
from jupyter_client.provisioning import LocalProvisioner

from tools.setup_cell import ROOT

# Not matplotlib: when it's imported, a notebook must already be there to draw into. And nothing
# that draws random numbers: a fork would go on with its parent's. (Python's own start anew.)
PRELOADED = (
    "torch", "altair", "sacrebleu", "tokenizers", "safetensors.torch", "ipykernel.kernelapp",
)
AVAILABLE = sys.platform == "linux"


class Fork:
    """A forked process, with the methods of a subprocess.Popen that a kernel's manager asks for."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int):
        self.pid = pid

    def poll(self) -> int | None:
        """None while it runs. It isn't a child of this process, so how it ended is unknown: 0."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return 0

    wait = poll  # asked after the end only

    def send_signal(self, number: int):
        """Send it a signal; one that has ended meanwhile needs none."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def terminate(self):
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self):
        """End it."""
        self.send_signal(signal.SIGKILL)


class Forks:
    """Starts the process that makes the kernels, with the environment that is set now."""

    def __init__(self, variables: dict[str, str]):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tools.kernels"], encoding="utf-8", env=variables,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT,
        )

    def __call__(self, command: list[str], env: dict[str, str], cwd: str) -> Fork:
        """A kernel. command: as without a fork, `python -m ipykernel_launcher` and its options."""
        request = {"options": command[command.index("ipykernel_launcher") + 1 :], "env": env,
                   "cwd": str(cwd)}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError("The process that makes kernels has ended. It says why above.")
        return Fork(int(answer))


class ForkedKernels(LocalProvisioner):
    """What starts a kernel, and knows whether it runs."""

    forks: Forks

    async def launch_kernel(self, cmd, *, env, cwd, **_):
        """Start it."""
        self.process = self.forks(cmd, env, cwd)
        self.pid = self.pgid = self.process.pid  # it leads a group of its own
        self.cwd = cwd
        return self.connection_info


def manager(forks: Forks) -> type[AsyncKernelManager]:
    """A class of kernel managers whose kernels are forks."""
    started_by = type("ForkedKernels", (ForkedKernels,), {"forks": forks})

    class Manager(AsyncKernelManager):
        async def _async_pre_start_kernel(self, **options):
            self.provisioner = started_by(
                kernel_id=self.kernel_id, kernel_spec=self.kernel_spec, parent=self
            )
            return await super()._async_pre_start_kernel(**options)

    return Manager


def become_kernel(options: list[str], env: dict[str, str], cwd: str):
    """Turn this fork into a kernel; returns when it's shut down."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # the pipe to whoever asked for kernels isn't for them
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    with contextlib.suppress(ImportError):
        import sitecustomize

        importlib.reload(sitecustomize)  # with this kernel's variables: see tools/watched
    # It ends when the process that forked it does.
    parent = f"--IPKernelApp.parent_handle={os.getppid()}"
    sys.argv = ["ipykernel_launcher", parent, *options]
    from ipykernel import kernelapp

    kernelapp.launch_new_instance()


def main():
    """Fork a kernel for each line of the input, until it ends."""
    for name in PRELOADED:
        importlib.import_module(name)
    sys.path.remove(os.getcwd())  # `python -m` has put it there
    for name in [name for name in sys.modules if name.partition(".")[0] == "tools"]:
        del sys.modules[name]
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so that no kernel stays behind as a zombie
    while line := sys.stdin.readline():
        pid = os.fork()
        if not pid:
            become_kernel(**json.loads(line))
            sys.exit()
        print(pid, flush=True)


if __name__ == "__main__":
    main()
