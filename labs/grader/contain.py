"""The walls around a kernel in which a student's code runs.

Inside there is no network, no other process, no environment variable of yours and no file but the
system's programs, Python, the library (all read-only) and one folder of its own. The grading runs
outside and talks with the kernel through sockets in that folder. The walls are namespaces of the
Linux kernel, set up by `bwrap` (Debian's and Ubuntu's package bubblewrap), or else by `unshare` of
util-linux and a few mounts. Neither needs to be root.
"""

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from .masters import ROOT

# What programs need. A path that is missing is left out, and so is everything else in /etc.
SYSTEM = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/alternatives", "/etc/fonts",
          "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime"]
LIBRARY = ["transformer_lib", "exercises", "results", "images"]  # not labs/, where the answers are
SIZE = str(512 * 2**20)  # bytes of each folder in memory: the home, /tmp and /dev/shm
DEVICES = ["null", "zero", "full", "random", "urandom", "tty"]

# The work of bwrap for `unshare`: a new root of read-only mounts. $1 is an empty folder to build it
# in, $2 the folder that may be written; then paths up to --, then the command.
NEW_ROOT = r"""
set -e
new=$1 own=$2; shift 2
mount --make-rprivate /
mount -t tmpfs -o mode=755 none "$new"
mkdir -p "$new/proc" "$new/dev/shm" "$new/tmp"
mount -t proc proc "$new/proc"
mount -t tmpfs -o mode=1777,size=SIZE none "$new/tmp"
mount -t tmpfs -o mode=1777,size=SIZE none "$new/dev/shm"
for device in DEVICES; do
  : > "$new/dev/$device"
  mount --bind "/dev/$device" "$new/dev/$device"
done
ln -s /proc/self/fd "$new/dev/fd"
while [ "$1" != -- ]; do
  if [ -d "$1" ]; then mkdir -p "$new$1"; else mkdir -p "$(dirname "$new$1")"; : > "$new$1"; fi
  mount --rbind "$1" "$new$1"
  options=$(findmnt -n -o VFS-OPTIONS --target "$1" | head -n 1 | sed 's/^rw/ro/')
  mount -o "remount,bind,$options" "$new$1"
  shift
done
shift
mkdir -p "$new$own"
mount --bind "$own" "$new$own"
cd "$new"
exec setsid chroot "$new" setpriv --bounding-set=-all --inh-caps=-all --no-new-privs "$@"
""".replace("DEVICES", " ".join(DEVICES)).replace("SIZE", SIZE)


def environment(home: Path) -> dict[str, str]:
    """All variables that the kernel gets."""
    return {"PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(home), "TMPDIR": str(home), "USER": "student", "LANG": "C.UTF-8",
            "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false",
            "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1"}


def readable() -> list[str]:
    """The paths that exist inside, read-only."""
    paths = [*SYSTEM, sys.base_prefix, sys.prefix, *(str(ROOT / name) for name in LIBRARY)]
    return [path for path in dict.fromkeys(paths) if os.path.exists(path)]


def command(how: str | None, folder: Path) -> list[str]:
    """What goes before the kernel's own command. `folder` holds home/ and may be written.

    how: "bwrap", "unshare", or None for no walls at all; "user" changes to the user nobody, for a
    container that belongs to one submission and in which the other two don't work.
    """
    home = folder / "home"
    variables = environment(home)
    clean = ["env", "-i", "-C", str(home), *(f"{k}={value}" for k, value in variables.items())]
    if how == "bwrap":
        binds = [word for path in readable() for word in ("--ro-bind", path, path)]
        return ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
                "--proc", "/proc", "--dev", "/dev", "--size", SIZE, "--tmpfs", "/dev/shm",
                "--size", SIZE, "--tmpfs", "/tmp", *binds, "--bind", str(folder), str(folder),
                "--size", SIZE, "--tmpfs", str(home), "--remount-ro", "/", "--", *clean]
    if how == "unshare":
        root = folder / "root"
        root.mkdir(exist_ok=True)
        return ["setpriv", "--pdeathsig", "KILL", "unshare", "--user", "--map-root-user", "--mount",
                "--net", "--ipc", "--uts", "--pid", "--fork", "--kill-child", "--",
                "sh", "-c", NEW_ROOT, "sh", str(root), str(folder), *readable(), "--",
                *clean]
    if how == "user":
        return ["sh", "-c", 'own=$1; shift; chmod o+x "$own/.."; '
                'chown -R 65534:65534 "$own"; exec "$@"', "sh",
                str(folder), "setpriv", "--pdeathsig", "KILL", "--reuid", "65534", "--regid",
                "65534", "--clear-groups", "--no-new-privs", "--inh-caps=-all", *clean]
    return clean


@functools.cache
def methods() -> list[str]:
    """Which ways work on this machine, the best first. Each is tried, not only looked for."""
    found = []
    for how in ("bwrap", "unshare"):
        with tempfile.TemporaryDirectory(prefix="lab-") as folder:
            (Path(folder) / "home").mkdir()
            trial = [*command(how, Path(folder)), sys.executable, "-c",
                     "from pathlib import Path; Path('../works').touch()"]
            if shutil.which(how) and subprocess.run(trial, capture_output=True).returncode == 0:
                if (Path(folder) / "works").exists():
                    found.append(how)
    return found
