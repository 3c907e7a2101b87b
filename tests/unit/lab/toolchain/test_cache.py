import io
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from berth.lab.progress import LabProgress
from berth.lab.toolchain.cache import MANIFEST, Cache, defect

KEY = "0123456789abcdef0123"


class Maker:
    """Makes an entry of one program, and counts how often."""

    def __init__(self, contents: bytes = b"program") -> None:
        self.contents = contents
        self.times = 0

    def __call__(self, folder: Path) -> None:
        self.times += 1
        (folder / "crds").mkdir()
        (folder / "crds" / "ray.yaml").write_text("kind: CustomResourceDefinition\n")
        (folder / "tool").write_bytes(self.contents)


@pytest.fixture
def cache(tmp_path: Path, progress: LabProgress) -> Cache:
    return Cache(tmp_path / "cache", progress)


@pytest.fixture
def printed(progress: LabProgress) -> Callable[[], str]:
    """Progress lines so far."""
    return lambda: cast("io.StringIO", progress.console.file).getvalue()


def test_an_entry_is_made_once_and_then_used(cache: Cache, printed: Callable[[], str]) -> None:
    make = Maker()
    first = cache.obtain("tool", KEY, make)
    assert cache.obtain("tool", KEY, make) == first
    assert (first / "tool").read_bytes() == b"program"
    assert make.times == 1
    assert printed() == ""


def test_another_key_is_another_entry(cache: Cache) -> None:
    old = cache.obtain("tool", KEY, Maker(b"old"))
    new = cache.obtain("tool", KEY[::-1], Maker(b"new"))
    assert (old / "tool").read_bytes() == b"old"
    assert (new / "tool").read_bytes() == b"new"


def _cut_manifest(entry: Path) -> None:
    text = (entry / MANIFEST).read_text()
    (entry / MANIFEST).write_text(text[: len(text) // 2])


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda entry: (entry / "tool").write_bytes(b"pro"), "tool has 3 bytes instead of 7"),
        (lambda entry: (entry / "crds" / "ray.yaml").unlink(), "ray.yaml is missing"),
        (lambda entry: (entry / MANIFEST).unlink(), "manifest is missing"),
        (_cut_manifest, "manifest is missing or unreadable"),
    ],
)
def test_a_broken_entry_is_noticed_and_made_again(
    cache: Cache, printed: Callable[[], str], damage: Callable[[Path], None], reason: str
) -> None:
    make = Maker()
    entry = cache.obtain("tool", KEY, make)
    damage(entry)
    assert reason in str(defect(entry))
    assert (cache.obtain("tool", KEY, make) / "tool").read_bytes() == b"program"
    assert make.times == 2
    assert defect(entry) is None
    (line,) = printed().splitlines()
    assert reason in line


def test_a_build_that_fails_leaves_nothing(cache: Cache) -> None:
    def fail(folder: Path) -> None:
        (folder / "tool").write_bytes(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.obtain("tool", KEY, fail)
    assert not cache.path("tool", KEY).exists()
    assert [path for path in cache.folder.iterdir() if path.is_dir()] == []


def test_what_a_killed_build_left_is_never_used_and_is_removed(cache: Cache) -> None:
    script = textwrap.dedent("""
        import os, signal, sys
        from pathlib import Path
        from berth.lab.progress import LabProgress
        from berth.lab.toolchain.cache import Cache

        def make(folder):
            (folder / "tool").write_bytes(b"half")
            os.kill(os.getpid(), signal.SIGKILL)

        Cache(Path(sys.argv[1]), LabProgress()).obtain("tool", sys.argv[2], make)
    """)
    killed = subprocess.run([sys.executable, "-c", script, str(cache.folder), KEY], check=False)
    assert killed.returncode < 0
    left = [path for path in cache.folder.iterdir() if path.is_dir()]
    assert len(left) == 1
    entry = cache.obtain("tool", KEY, Maker())
    assert (entry / "tool").read_bytes() == b"program"
    assert [path for path in cache.folder.iterdir() if path.is_dir()] == [entry]


def test_two_builders_at_once_build_once(cache: Cache, tmp_path: Path) -> None:
    script = textwrap.dedent("""
        import os, sys, time
        from pathlib import Path
        from berth.lab.progress import LabProgress
        from berth.lab.toolchain.cache import Cache

        folder, key, count, other = sys.argv[1:]

        def make(entry):
            with open(count, "a") as file:
                file.write("made\\n")
            deadline = time.monotonic() + 30
            while not os.path.exists(other) and time.monotonic() < deadline:
                time.sleep(0.01)  # until the other one waits for us
            (entry / "tool").write_bytes(b"program")

        class Waiting(LabProgress):
            def say(self, text):
                Path(other).write_text(text)

        print(Cache(Path(folder), Waiting()).obtain("tool", key, make))
    """)
    count = tmp_path / "count"
    waits = tmp_path / "waits"
    command = [sys.executable, "-c", script, str(cache.folder), KEY, str(count), str(waits)]
    builders = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [builder.communicate(timeout=60)[0] for builder in builders]
    assert [builder.returncode for builder in builders] == [0, 0]
    assert outputs[0] == outputs[1]
    assert count.read_text() == "made\n"
    assert "waiting for another build" in waits.read_text()
