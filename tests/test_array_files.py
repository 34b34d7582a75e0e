"""Arrays in files: what is whole is told from what is not, and temporary files go with those who use them."""

import os
import subprocess
import sys

import numpy as np
import pytest

from halfseen import array_files
from halfseen.array_files import lock_file, map_temporary, remove_leftovers, temporary_folder, write_array
from halfseen.errors import DataError

needs_locks = pytest.mark.skipif(array_files.fcntl is None, reason="no locks here")


@pytest.mark.parametrize(
    "change", [{"shape": (3, 2)}, {"shape": (1 << 40, 1 << 22)}, {"crc": 1}, {"dtype": "<f4"}, {"path": "nowhere"}]
)
def test_a_file_that_is_not_what_was_written_is_refused(change, tmp_path):
    file = write_array(np.arange(8.0).reshape(4, 2), tmp_path / "array")
    file.check()
    with pytest.raises(DataError, match="missing, cut off or changed bytes"):
        file._replace(**change).check()


@needs_locks
def test_a_locked_file_is_not_locked_again_before_it_is_closed(tmp_path):
    with lock_file(tmp_path / "lock"), pytest.raises(BlockingIOError):
        lock_file(tmp_path / "lock")
    lock_file(tmp_path / "lock", make=False).close()
    with pytest.raises(FileNotFoundError):
        lock_file(tmp_path / "other", make=False)


def run_python(code, *args):
    command = [sys.executable, "-c", f"from halfseen.array_files import *\n{code}", *map(str, args)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@needs_locks
def test_only_folders_of_processes_that_no_longer_run_are_removed(tmp_path):
    """Whatever their number and machine, which mean nothing in containers."""
    code = (
        "import sys; print(temporary_folder(sys.argv[1]), flush=True); (temporary_folder(sys.argv[1]) / 'a').touch(); "
    )
    first = run_python(f"{code} input()", tmp_path)
    first.stdout.readline()
    second = run_python(f"{code} os._exit(1)", tmp_path)
    second.communicate(timeout=60)
    (tmp_path / f"halfseen-here-{os.getpid()}-abcdefgh").mkdir()  # without a lock
    (tmp_path / "halfseen-notes").mkdir()
    own = temporary_folder(tmp_path)
    assert len(list(tmp_path.iterdir())) == 5
    first.kill()
    first.communicate(timeout=60)
    remove_leftovers(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        own.name, f"halfseen-here-{os.getpid()}-abcdefgh", "halfseen-notes",
    }  # fmt: skip


def test_a_mapped_array_takes_its_folder_with_it(tmp_path):
    folder = temporary_folder(tmp_path)
    np.arange(9.0).tofile(folder / "a")
    array = map_temporary(folder / "a", np.float64, 9)
    assert array.sum() == 36.0
    del array
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@pytest.mark.parametrize("end", ["del array; os._exit(0)", "sys.exit()"])
def test_a_forked_child_leaves_the_files_of_its_parent(end, tmp_path):
    code = f"""
import os, sys
folder = temporary_folder(sys.argv[1])
np.arange(9.0).tofile(folder / "a")
array = map_temporary(folder / "a", np.float64, 9)
child = os.fork()
if child == 0:
    {end}
os.waitpid(child, 0)
print((folder / "a").exists())
"""
    assert run_python(code, tmp_path).communicate(timeout=60)[0] == "True\n"
    assert not list(tmp_path.iterdir())
