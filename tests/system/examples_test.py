"""The folders below examples, each run as its page says, on the digits that come with the source."""
import shutil
import sys
import unittest
from pathlib import Path

from harness import DIGITS, ROOT, SystemTest
from ports import free_address

sys.path.insert(0, str(ROOT / "tests/python"))
from pythons import require_pjrt_plugin, require_python  # noqa: E402


class ExamplesTest(SystemTest):
    def use(self, example, module):
        """Copies the example and puts a Python with the module first into PATH."""
        python = Path(require_python(module)).parent
        self.environment.update(PATH=f"{python}:{self.environment['PATH']}", PYTHONPATH=str(ROOT / "python"),
                                PYTHONDONTWRITEBYTECODE="1")
        self.example = self.folder / example
        shutil.copytree(ROOT / "examples" / example, self.example)

    def export(self):
        outcome = self.finish(self.start_command("bash", "-c", f"cd {self.example} && python3 export.py"), timeout=300)
        self.assertEqual(outcome.code, 0, str(outcome))

    def assert_trains(self, *cluster):
        outcome = self.run_program("disttrain", "up", *cluster, "--job", self.example / "job.toml", "--json",
                                   "--set", f'data.path="{DIGITS}"')
        result = self.assert_finished(outcome)
        self.assertEqual(result["global_step"], 450)
        self.assertGreater(result["evaluation"]["accuracy"], 0.9)
        self.assertIn("accuracy", result["metrics"])
        workers = [task for task in result["tasks"] if task["task"].startswith("worker/")]
        self.assertEqual(len(workers), 2)

    def test_numpy(self):
        self.use("numpy", "numpy")
        self.assert_trains("--workers", 2)

    def test_jax(self):
        self.use("jax", "jax")
        self.assert_trains("--workers", 2)

    def test_jax_program(self):
        self.use("jax_program", "jax")
        plugin = require_pjrt_plugin()
        self.export()
        cluster = self.example / "cluster.toml"
        text = cluster.read_text().replace("/opt/pjrt/plugin.so", str(plugin)).replace('"state"', f'"{self.folder}/state"')
        for port in ("7100", "7110", "7120", "7121"):
            self.assertIn(f'"127.0.0.1:{port}"', text)
            text = text.replace(f"127.0.0.1:{port}", free_address())
        cluster.write_text(text)
        self.assert_trains(cluster)

    def test_pytorch_program(self):
        self.use("pytorch_program", "torch")
        self.export()
        self.assert_trains("--workers", 2)

    def test_each_folder_has_what_its_page_names(self):
        for page in sorted((ROOT / "examples").glob("*/README.md")):
            with self.subTest(page.parent.name):
                self.assertTrue((page.parent / "job.toml").exists())
                self.assertIn(f"]({page.parent.name})", (ROOT / "examples/README.md").read_text())
                checked = self.run_program("disttrain", "check", page.parent / "job.toml")
                self.assertEqual(checked.code, 0, str(checked))


if __name__ == "__main__":
    unittest.main()
