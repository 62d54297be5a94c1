"""One record has a loss that is infinite as a float32, but a finite gradient. Its step is skipped as a whole, although
gradients usually leave a worker before the step is computed."""
import random
import unittest

from harness import SystemTest

JOB = """
[job]
name = "infinite"
shards = 1
[model]
builtin = "mlp"
layers = [256, 512, 1]
loss = "mse"
[data]
path = "{folder}"
files = "train.csv"
format = "csv"
[train]
mode = "{mode}"
batch_size = {batch}
accumulate = {accumulate}
epochs = 1
optimizer = {{ rule = "sgd", learning_rate = 1e-4 }}
[evaluate]
files = "test.csv"
"""
COLUMNS, RECORDS, STEP_RECORDS = 256, 400, 10


class InfiniteLossTest(SystemTest):
    def write_data(self, bad_record):
        draw = random.Random(1)
        for name, records in (("train", RECORDS), ("test", 20)):
            lines = [",".join(f"x{i}" for i in range(COLUMNS)) + ",y"]
            for record in range(records):
                values = [draw.random() for _ in range(COLUMNS)]
                label = 2e20 if name == "train" and record == bad_record else sum(values[:10])
                lines.append(",".join(f"{value:.4f}" for value in values) + f",{label:g}")
            (self.folder / f"{name}.csv").write_text("\n".join(lines) + "\n")

    def hash_of(self, mode, accumulate):
        job = self.folder / "job.toml"
        job.write_text(JOB.format(folder=self.folder, mode=mode, accumulate=accumulate,
                                  batch=STEP_RECORDS // accumulate))
        result = self.assert_finished(self.up(job, workers=1))
        self.assertEqual(result["skipped"], 1, result)
        return result["evaluation"]["parameters_hash"]

    def test_nothing_of_the_step_is_applied(self):
        self.write_data(bad_record=150)
        expected = self.hash_of("sync", 1)
        self.assertEqual(self.hash_of("async", 1), expected)

    def test_nothing_of_the_step_is_applied_if_it_has_parts(self):
        self.write_data(bad_record=150)
        expected = self.hash_of("sync", 2)
        self.assertEqual(self.hash_of("async", 2), expected)


if __name__ == "__main__":
    unittest.main()
