"""Packages of step programs with anything wrong in them: each gives one clear error, the cluster is unharmed, and the
next job trains. The packages are those of tests/data/program, edited here, so the tests need no PyTorch for Python.
tests/common/program and tests/engine/program test more of the readers' messages."""
import json
import os
import struct
import unittest
import zipfile
from pathlib import Path

from harness import BIN
from lasting_cluster import PROGRAM_JOB, WORKERS, LastingClusterTest
from npy import write_npy

PROGRAMS = Path(os.environ.get("PROGRAMS", BIN.parent / "tests/data/program/unpacked"))
SOURCES = ("batch_norm.pt2", "batch_norm.pt")
RECORDS = 64
if not {"avx2", "fma"} <= set(Path("/proc/cpuinfo").read_text().split()):
    raise unittest.SkipTest("the packages are compiled for AVX2, which this processor lacks")
GIBIBYTE = 1 << 30


class BadProgramTest(LastingClusterTest):
    def setUp(self):
        super().setUp()
        data = self.folder / "data"
        data.mkdir()
        write_npy(data / "inputs.npy", "<f4", (RECORDS, 6), [i / 100 for i in range(RECORDS * 6)])
        write_npy(data / "labels.npy", "<i8", (RECORDS,), [i % 3 for i in range(RECORDS)])

    # Packages.

    def with_members(self, source, edit):
        """A copy of a package. edit(name, content) returns the members that replace a member: [(name, content)]."""
        path = self.folder / f"bad{Path(source).suffix}"
        with zipfile.ZipFile(PROGRAMS / source) as package, zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as copy:
            for member in package.infolist():
                for name, content in edit(member.filename, package.read(member)):
                    copy.writestr(zipfile.ZipInfo(name), content)
        return path

    def with_sidecar(self, source, edit):
        """A copy of a package. edit(sidecar) changes the sidecar's JSON, or returns another text."""
        def edit_member(name, content):
            if not name.endswith("/disttrain.json"):
                return [(name, content)]
            sidecar = json.loads(content)
            return [(name, edit(sidecar) or json.dumps(sidecar))]
        return self.with_members(source, edit_member)

    def with_bytes(self, source, edit):
        path = self.folder / f"bad{Path(source).suffix}"
        content = bytearray((PROGRAMS / source).read_bytes())
        path.write_bytes(edit(content))
        return path

    # Jobs.

    def run_job(self, program, train=""):
        job = self.folder / "bad.toml"
        job.write_text(PROGRAM_JOB.format(workers=WORKERS, program=program, data=self.folder / "data", epochs=2, train=train))
        return self.submit(job)

    def assert_program_fails(self, program, *words):
        return self.assert_fails(self.run_job(program), *words)

    # Tests.

    def test_the_packages_themselves_are_good(self):
        for source in SOURCES:
            self.assert_finished(self.run_job(PROGRAMS / source))
            self.assert_unharmed()

    def test_another_version_of_torch(self):
        for source in SOURCES:
            self.assert_program_fails(self.with_sidecar(source, lambda sidecar: sidecar.update(library_version="2.9.1")),
                                      "model.program: ", "was exported with torch 2.9.1, and this worker has torch 2.11.0; "
                                      "export the model again with torch==2.11.0")

    def test_another_version_of_the_format(self):
        for source in SOURCES:
            self.assert_program_fails(self.with_sidecar(source, lambda sidecar: sidecar.update(format=4)), "has format 4",
                                      "use a newer disttrain here")

    def test_another_kind_of_program(self):
        self.assert_program_fails(self.with_sidecar("batch_norm.pt", lambda sidecar: sidecar.update(kind="stablehlo")),
                                  "was exported from JAX, and this worker's device is \"cpu\"")
        for source, kind in (("batch_norm.pt", "pt2"), ("batch_norm.pt2", "torchscript")):
            with self.subTest(source):
                self.assert_program_fails(self.with_sidecar(source, lambda sidecar: sidecar.update(kind=kind)),
                                          "export the model again")

    def test_level_of_processors_that_isnt_known(self):
        for level in ("x86-64-v9", "armv9-a", "x86-64-v2"):
            self.assert_program_fails(self.with_sidecar("batch_norm.pt2", lambda sidecar: sidecar.update(cpu=level)),
                                      f'is compiled for processors of level "{level}", which this worker doesn\'t know; '
                                      "expected x86-64-v3 or x86-64-v4: export the model again")

    def test_fixed_batch_dimension(self):
        for source in SOURCES:
            self.assert_program_fails(self.with_sidecar(source, lambda sidecar: sidecar.update(batch=7)),
                                      "was exported with dynamic_batch=False, so it takes only batches of 7 records, and not "
                                      "this one of 8: export the model with dynamic_batch=True, or let")

    def test_weights_that_are_nan(self):
        def spoil(name, content):
            # The values of head.bias are the last ones of the file.
            return [(name, content[:-8] + struct.pack("<2f", float("nan"), 1) if name.endswith(".safetensors") else content)]
        for source in SOURCES:
            self.assert_program_fails(self.with_members(source, spoil), "variable head.bias has 1 initial values of 3 that are "
                                      "NaN or infinite; export a model with finite weights")

    def test_data_that_doesnt_fit(self):
        for edit, words in [
                (lambda s: s["columns"][0].update(shape=[7]), 'have 6 values each, but the model\'s column "inputs" takes 7'),
                (lambda s: s["columns"][0].update(dtype="int64", limit=5),
                 "have values of type float32, but the model's column \"inputs\" takes int64"),
                (lambda s: s["columns"][1].update(limit=2), "the labels of data.files go up to 2, but the model has 2 outputs")]:
            with self.subTest(words):
                self.assert_program_fails(self.with_sidecar("batch_norm.pt2", edit), words)

    def test_sidecar_that_lies(self):
        for edit, words in [
                (lambda s: s["variables"][0].update(name="../../etc/passwd"), "has no values of variable ../../etc/passwd"),
                (lambda s: s["variables"][0].update(shape=[1 << 40]), "variable body.weight has more than 137438953472 elements"),
                (lambda s: s.update(metrics=[{"name": f"m{i}", "kind": "accuracy"} for i in range(100_000)]),
                 '"metrics" isn\'t a list of at most 64 entries'),
                (lambda s: s["programs"].pop("step") and None, '"programs" has no program "step"'),
                (lambda s: s["programs"]["step"].update(columns=["inputs"]), "libtorch said: "),
                (lambda s: "{" * 1000, "isn't a JSON object"),
                (lambda s: "[" * 1_000_000, "isn't a JSON object")]:
            with self.subTest(words):
                self.assert_program_fails(self.with_sidecar("batch_norm.pt2", edit), words)

    def test_sidecar_of_a_gibibyte_isnt_read(self):
        self.assert_program_fails(self.with_sidecar("batch_norm.pt", lambda sidecar: b" " * GIBIBYTE),
                                  "disttrain.json has 1073741824 bytes; expected at most 16777216")

    def test_zip_bomb_isnt_unpacked(self):
        path = self.folder / "bad.pt"
        with zipfile.ZipFile(PROGRAMS / "batch_norm.pt") as package, zipfile.ZipFile(path, "w") as bomb:
            for member in package.infolist():
                content = b" " * (GIBIBYTE >> 7) if member.filename.endswith("/disttrain.json") else package.read(member)
                bomb.writestr(member.filename, content, zipfile.ZIP_DEFLATED)
        self.assertLess(path.stat().st_size, 1_000_000)
        self.assert_program_fails(path, "is compressed")

    def test_members_outside_of_the_package(self):
        """A worker unpacks compiled programs into a folder of its own, under names of its own."""
        def move(name, content):
            return [("/".join(["../../..", *name.split("/")[1:]]), content)]
        self.assert_finished(self.run_job(self.with_members("batch_norm.pt2", move)))
        self.assert_unharmed()
        self.assertEqual(sorted(path.name for path in self.folder.iterdir() if path.name.startswith("step")), [])

    def test_damaged_files(self):
        for source in SOURCES:
            size = (PROGRAMS / source).stat().st_size
            for kept in (0, 10, size // 2, size - 10):
                self.assert_program_fails(self.with_bytes(source, lambda content: content[:kept]),
                                          "the file is truncated, damaged, or no package; export it again")
        for at in (3, 1000, 300_000, 600_000):
            def flip(content):
                content[at] ^= 0xFF
                return content
            self.assert_program_fails(self.with_bytes("batch_norm.pt2", flip), "the file is truncated, damaged, or no package")

    def test_damaged_programs(self):
        def damage(name, content):
            return [(name, b"x" * len(content) if name.endswith((".so", ".py")) else content)]

        def remove(name, content):
            return [] if name.endswith((".so", ".py")) else [(name, content)]
        for source in SOURCES:
            self.assert_program_fails(self.with_members(source, damage), "the file is damaged: export the model again")
            self.assert_program_fails(self.with_members(source, remove), "export the model again")

    def test_code_and_values_that_are_nested_deeply(self):
        """libtorch would overflow the stack, and end the worker."""
        def nest_code(name, content):
            nested = b"(" * 20_000 + b"1" + b")" * 20_000
            return [(name, content.replace(b"return", b"y = " + nested + b"\n    return") if name.endswith(".py") else content)]

        def nest_values(name, content):
            return [(name, b"\x80\x02)" + b"\x85" * 1_000_000 + b"." if name.endswith("/data.pkl") else content)]
        for edit, words in ((nest_code, "has more than 200 brackets inside of each other; export the model again"),
                            (nest_values, "its values are nested deeper than 1000 levels; export the model again")):
            with self.subTest(words):
                self.assert_program_fails(self.with_members("batch_norm.pt", edit), words)

    def test_files_that_arent_packages(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        for path, words in [(self.folder / "none.pt2", "No such file or directory"), (self.folder, "isn't a file"),
                            (pipe, "isn't a file"), ("/dev/zero", "isn't a file"), (self.cluster, "no package")]:
            with self.subTest(path):
                self.assert_program_fails(path, "model.program: ", words)


if __name__ == "__main__":
    unittest.main()
