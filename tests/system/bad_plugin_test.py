"""PJRT plugins that are missing, broken, or no plugins: each gives one clear error, the worker lives on, and the next
job trains. The plugins are those of tests/engine/pjrt/fake_plugin.cc."""
import json
import struct
import unittest
import zipfile
from pathlib import Path

from harness import BIN, ROOT, SystemTest
from lasting_cluster import NUMPY_TRAINER, PROGRAM_JOB, WORKERS, LastingClusterTest
from npy import write_npy

PLUGINS = BIN.parent / "tests"
RECORDS = 64


def write_package(path):
    """A package as disttrain.export_jax writes it. Its programs can't be compiled."""
    columns = [{"name": "inputs", "dtype": "float32", "shape": [6], "limit": 0},
               {"name": "labels", "dtype": "int64", "shape": [], "limit": 3}]
    sidecar = {"format": 1, "kind": "stablehlo", "library": "jax", "library_version": "0.10.2", "cpu": "", "batch": None,
               "variables": [{"name": "w", "kind": "trainable", "shape": [6, 3], "dtype": "float32", "persistent": True}],
               "aliases": {}, "columns": columns, "metrics": [],
               "programs": {"step": {"columns": ["inputs", "labels"]}}}
    header = json.dumps({"w": {"dtype": "F32", "shape": [6, 3], "data_offsets": [0, 72]}}).encode()
    with zipfile.ZipFile(path, "w") as package:
        package.writestr("disttrain.json", json.dumps(sidecar))
        package.writestr("disttrain.safetensors", struct.pack("<Q", len(header)) + header + bytes(72))
        package.writestr("stablehlo/step-8.mlirbc", b"no program")


class BadPluginTest(LastingClusterTest):
    def setUp(self):
        SystemTest.setUp(self)
        self.environment["PYTHONPATH"] = str(ROOT / "python")
        data = self.folder / "data"
        data.mkdir()
        write_npy(data / "inputs.npy", "<f4", (RECORDS, 6), [i / 100 for i in range(RECORDS * 6)])
        write_npy(data / "labels.npy", "<i8", (RECORDS,), [i % 3 for i in range(RECORDS)])
        write_package(self.folder / "step.shlo")

    def next_job(self):
        """A trainer doesn't use the worker's device."""
        return self.trainer_job(NUMPY_TRAINER + "    job.push_pull({'w': np.zeros((2, 3))}, loss=0)\n", name="next",
                                train="steps = 20")

    def run_job(self):
        job = self.folder / "bad.toml"
        job.write_text(PROGRAM_JOB.format(workers=WORKERS, program=self.folder / "step.shlo", data=self.folder / "data",
                                          epochs=1, train=""))
        return self.submit(job)

    def assert_plugin_fails(self, plugin, *words):
        """Each plugin has a cluster of its own. A second job fails in the same way: the first one leaves nothing half
        loaded behind."""
        self.start_cluster(worker=f'device = "pjrt:{plugin}"')
        for _ in range(2):
            error = self.assert_fails(self.run_job(), *words)
            self.assertNotIn("\x1b", error)
            self.assertLess(len(error), 20_000)
        self.stop_cluster()

    def test_plugin_that_is_missing(self):
        self.assert_plugin_fails(self.folder / "none.so", f'PJRT plugin "{self.folder}/none.so" doesn\'t exist or isn\'t a file')

    def test_files_that_arent_plugins(self):
        text = self.folder / "text.so"
        text.write_text("no library")
        self.assert_plugin_fails(text, "text.so")
        self.assert_plugin_fails(self.folder, "doesn't exist or isn't a file")

    def test_library_that_isnt_a_plugin(self):
        library = next(path for folder in ("/lib", "/lib64", "/usr/lib") for path in Path(folder).glob("*-linux-gnu/libz.so.1"))
        self.assert_plugin_fails(library, "is not a PJRT plugin: it has no function GetPjrtApi")

    def test_broken_plugins(self):
        for kind, words in [("no_table", "GetPjrtApi"), ("other_version", "has version 1.81 of the PJRT C API"),
                            ("old_version", "has version 0.7 of the PJRT C API"), ("lacks_function", "lacks"),
                            ("fails_to_initialize", "the \\x1b[31mfan\\nis stuck"), ("fails_to_open", "the \\x1b[31mfan\\nis stuck"),
                            ("no_devices", "has no devices")]:
            with self.subTest(kind):
                self.assert_plugin_fails(PLUGINS / f"fake_plugin_{kind}.so", words)


if __name__ == "__main__":
    unittest.main()
