"""One run, one process: a lock in the run folder that names its holder, and ends with it."""

import errno
import json
import os
import platform
import stat
from datetime import UTC, datetime
from pathlib import Path

NAME = "lock"


class RunLock:
    """Hold a run folder for this process, from `acquire` to `release` or to the process's end.

    The operating system frees the lock when its holder dies, however that happens: a file that a
    killed process left means nothing. If the file system has no locks, a line says so.
    """

    def __init__(self, folder: str | Path):
        self.path = Path(folder) / NAME
        self._handle: int | None = None

    def __enter__(self) -> "RunLock":
        self.acquire()
        return self

    def __exit__(self, *_error) -> None:
        self.release()

    def acquire(self) -> None:
        """Take the lock. Raises RuntimeError, naming the holder, if another process has it."""
        while self._handle is None:
            try:
                # If this were a link, the file that it points to would be overwritten.
                flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
                handle = os.open(self.path, flags, 0o644)
            except OSError as error:
                if error.errno == errno.ELOOP:
                    raise RuntimeError(f"{self.path} is a link: remove it first.") from None
                if error.errno in (errno.ENOTDIR, errno.EISDIR, errno.ENOENT):
                    raise RuntimeError(f"{self.path} cannot be a lock: it is not in a folder, or "
                                       "is one itself; choose another run folder.") from None
                if error.errno in (errno.EACCES, errno.EROFS):  # what can't write does no harm
                    return
                raise
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                os.close(handle)
                raise RuntimeError(f"{self.path} is not a regular file: remove it first.")
            try:
                _lock(handle)
            except BlockingIOError:
                os.close(handle)
                raise RuntimeError(
                    f"{self.path.parent} is in use: {self._holder()} is writing to it. Wait "
                    "for it, end it, or choose another run folder."
                ) from None
            except OSError as error:
                os.close(handle)
                print(
                    f"{self.path.parent} cannot be locked ({error.strerror}): make sure that no "
                    "other process writes to it."
                )
                return
            # The holder before us may have removed the file between our opening and locking it.
            try:
                same = os.path.samestat(os.fstat(handle), os.stat(self.path))
            except FileNotFoundError:
                same = False
            if same:
                self._handle = handle
            else:
                os.close(handle)
        about = {"pid": os.getpid(), "host": platform.node()}
        about["since"] = datetime.now(UTC).isoformat(timespec="seconds")
        os.truncate(self._handle, 0)
        os.write(self._handle, json.dumps(about).encode())

    def release(self) -> None:
        """Give the lock back, and leave no file behind."""
        if self._handle is not None:
            try:
                os.unlink(self.path)  # while we hold the lock: later it could be another's
            except OSError:  # Windows can't remove an open file, and an empty lock does no harm
                pass
            os.close(self._handle)
            self._handle = None

    def _holder(self) -> str:
        try:
            about = json.loads(self.path.read_bytes())
            return f"process {about['pid']} on {about['host']}, since {about['since']},"
        except (OSError, ValueError, KeyError, TypeError):  # the holder hasn't written it yet
            return "another process"


def _lock(handle: int) -> None:
    """Lock an open file without waiting. BlockingIOError: it is locked; OSError: no locks here."""
    try:
        import fcntl
    except ImportError:
        return _lock_on_windows(handle)
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _lock_on_windows(handle: int) -> None:
    try:
        import msvcrt
    except ImportError:
        raise OSError(errno.ENOSYS, "this system has no file locks") from None
    os.lseek(handle, 2**30, os.SEEK_SET)  # a byte far beyond the text, which others may read
    try:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    except OSError as error:
        raise BlockingIOError(error.errno, error.strerror) from None
    finally:
        os.lseek(handle, 0, os.SEEK_SET)
