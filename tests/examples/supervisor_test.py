"""examples/supervisor: its cluster and its job train, and they have the parts and the numbers of the script beside them."""
import ast
import re
import sys
import tomllib
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/system"))
from harness import SystemTest  # noqa: E402
from ports import free_address  # noqa: E402

EXAMPLE = ROOT / "examples/supervisor"
PORTS = ("7100", "7110", "7120", "7121")


class SupervisorTest(SystemTest):
    def test_the_job_trains_on_the_cluster(self):
        text = (EXAMPLE / "cluster.toml").read_text()
        for port in PORTS:
            self.assertIn(f'"127.0.0.1:{port}"', text)
            text = text.replace(f"127.0.0.1:{port}", free_address())
        cluster = self.folder / "cluster.toml"
        cluster.write_text(text)
        outcome = self.run_program("disttrain", "up", cluster, "--job", EXAMPLE / "job.toml", "--json", "--set",
                                   "train.steps=300")
        result = self.assert_finished(outcome)
        self.assertEqual(result["global_step"], 300)
        self.assertGreater(result["evaluation"]["accuracy"], 0.85)

    def test_the_job_and_the_cluster_say_what_the_script_says(self):
        script = (EXAMPLE / "supervisor.py").read_text()
        ast.parse(script)
        job = tomllib.loads((EXAMPLE / "job.toml").read_text())
        cluster = tomllib.loads((EXAMPLE / "cluster.toml").read_text())
        batch, steps, workers = re.search(r"BATCH, STEPS, WORKERS = (\d+), (\d+), (\d+)", script).groups()
        self.assertEqual((job["train"]["batch_size"], job["train"]["steps"], job["train"]["aggregate"]),
                         (int(batch), int(steps), int(workers)))
        self.assertEqual([entry["address"] for entry in cluster["ps"] + cluster["worker"]],
                         re.findall(r"127\.0\.0\.1:\d+", script))

    def test_the_page_explains_each_part(self):
        parts = re.findall(r"^ *# (\d)\. ", (EXAMPLE / "supervisor.py").read_text(), re.MULTILINE)
        self.assertEqual(parts, re.findall(r"^\| (\d) \|", (EXAMPLE / "README.md").read_text(), re.MULTILINE))


if __name__ == "__main__":
    unittest.main()
