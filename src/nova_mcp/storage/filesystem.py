"""Tells local disks from network file systems, where SQLite locks cannot be trusted."""

import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

_MOUNTINFO = Path("/proc/self/mountinfo")
_NETWORK_TYPES = frozenset(
    (
        *("9p", "afp", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "drvfs", "gfs2", "glusterfs", "gpfs"),
        *("lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "prl_fs", "smb2", "smb3", "smbfs", "vboxsf"),
        "virtiofs",
    )
)
# FUSE says nothing about where the bytes are, so only the programs known to keep them on this machine pass.
_LOCAL_FUSE = frozenset(
    ("fuseblk", "fuse.ntfs", "fuse.ntfs-3g", "fuse.exfat", "fuse.ext2", "fuse.mergerfs", "fuse.fuse-overlayfs")
)


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of the mount table."""

    point: str
    fs_type: str


def parse_mounts(mountinfo: str) -> tuple[Mount, ...]:
    """Mounts in the order of the table; lines of an unknown shape are skipped."""
    mounts = []
    for line in mountinfo.splitlines():
        left, separator, right = line.partition(" - ")
        fields, tail = left.split(" "), right.split(" ")
        if separator and len(fields) >= 5 and tail[0]:
            mounts.append(Mount(point=_unescape(fields[4]), fs_type=tail[0]))
    return tuple(mounts)


def _unescape(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def mount_of(path: str, mounts: tuple[Mount, ...]) -> Mount | None:
    """The mount an absolute path lies on: the deepest one, and the last of several on the same point."""
    target, best = PurePosixPath(path), None
    for mount in mounts:
        point = PurePosixPath(mount.point)
        if target.is_relative_to(point) and (best is None or len(point.parts) >= len(PurePosixPath(best.point).parts)):
            best = mount
    return best


def is_network(fs_type: str) -> bool:
    kind = fs_type.lower()
    return kind in _NETWORK_TYPES or (kind.startswith("fuse") and kind not in _LOCAL_FUSE)


def network_file_system(path: Path) -> str | None:
    """The type of network file system a path lies on; None on a local disk and where it cannot be told."""
    try:
        mounts = parse_mounts(_MOUNTINFO.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
    mount = mount_of(os.path.realpath(path), mounts)
    return mount.fs_type if mount is not None and is_network(mount.fs_type) else None
