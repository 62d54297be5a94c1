"""Files by columns: the example census, on a part of its csv files that comes with the source, and Parquet files."""
import csv
import shutil
import unittest

from harness import ROOT, SystemTest

CENSUS = ROOT / "tests" / "data" / "census-mini"
RANGES = ["--set", "data.records=[0, 500]", "--set", "evaluate.records=[500, 700]"]


class ColumnsTest(SystemTest):
    def setUp(self):
        super().setUp()
        self.data = self.folder / "data"
        shutil.copytree(CENSUS, self.data)
        self.job_file = self.folder / "census.toml"
        shutil.copy(ROOT / "examples" / "census" / "job.toml", self.job_file)

    def train(self, *arguments):
        return self.up(self.job_file, "--set", f"data.path={self.data}", *RANGES, *arguments, ps=2)

    def change(self, old, new, file="adult-0.csv"):
        path = self.data / file
        text = path.read_text()
        self.assertIn(old, text)
        path.write_text(text.replace(old, new, 1))

    def test_census_trains_and_predict_gives_the_accuracy_of_the_evaluation(self):
        (self.folder / "checkpoints").mkdir()
        result = self.assert_finished(self.train("--set", "checkpoint.directory=checkpoints", "--set", "train.epochs=20"))
        evaluation = result["evaluation"]
        self.assertEqual(evaluation["examples"], 200)
        self.assertGreater(evaluation["accuracy"], 0.78)
        self.assertGreater(evaluation["metrics"]["auc"], 0.85)
        outcome = self.run_program("disttrain", "predict", "checkpoints/census", "outputs.csv")
        self.assertEqual(outcome.code, 0, str(outcome))
        outputs = [float(line) for line in (self.folder / "outputs.csv").read_text().splitlines()[1:]]
        with open(CENSUS / "adult-1.csv") as file:
            labels = [row[-1] for row in csv.reader(file, skipinitialspace=True) if row[-1].endswith(".")]
        right = sum((output > 0) == (label == ">50K.") for output, label in zip(outputs, labels, strict=True))
        self.assertAlmostEqual(right / len(labels), evaluation["accuracy"], delta=1e-12)
        self.assert_predicts_without_training_files(outputs)

    def test_an_mlp_takes_one_hot_categories_weights_and_mixed_records(self):
        job = self.folder / "mlp.toml"
        job.write_text(f"""
[job]
name = "mlp"
[model]
builtin = "mlp"
layers = [11, 16, 1]
loss = "sigmoid_cross_entropy"
metrics = {{ accuracy = "accuracy" }}
[data]
format = "csv"
path = "{self.data}"
files = "adult-*.csv"
[data.columns]
age = {{ kind = "numeric", normalise = "standard" }}
age_group = {{ kind = "numeric", from = "age", boundaries = [30, 45], one_hot = true }}
relationship = {{ kind = "category", one_hot = true }}
fnlwgt = {{ kind = "weight" }}
income = {{ kind = "label", vocabulary = ["<=50K", ">50K"], strip = "." }}
[train]
mode = "sync"
batch_size = 50
epochs = 20
optimizer = {{ rule = "adam", learning_rate = 0.01 }}
[evaluate]
files = "adult-*.csv"
""")
        result = self.assert_finished(self.up(job, *RANGES))
        self.assertGreater(result["evaluation"]["accuracy"], 0.75)
        self.assertGreater(result["evaluation"]["loss"], 1000, "the weights are about 190,000")
        self.assert_refused(self.up(job, *RANGES, "--set", "model.layers=[10, 16, 1]"), 78, "have 11 values each",
                            "takes 10: change model.layers (its first number)")
        self.assert_refused(self.up(job, *RANGES, "--set", 'data.columns.age.kind="weight"'), 78, "is the weight already")
        mix = ["--set", "data.mix=0.3"]
        self.assert_refused(self.up(job, *RANGES, *mix), 78, "data.mix can't mix data.columns.fnlwgt")
        mixed = self.assert_finished(self.up(job, *RANGES, *mix, "--set", 'data.columns.fnlwgt.kind="ignore"'))
        self.assertLess(mixed["evaluation"]["loss"], 0.56, "what a model without inputs reaches")

    def assert_predicts_without_training_files(self, outputs):
        """The checkpoint has the words and means of the training set. The records to predict have no labels."""
        head, *lines = (self.data / "adult-1.csv").read_text().splitlines()
        other = self.folder / "other"
        other.mkdir()
        lines = [head, *(line for line in lines if line.endswith("."))]
        (other / "test.csv").write_text("".join(line.rpartition(",")[0] + "\n" for line in lines))
        shutil.rmtree(self.data)
        outcome = self.run_program("disttrain", "predict", "checkpoints/census", "others.csv", "--data", other,
                                   "--files", "test.csv", "--set", "evaluate.records=[0, 200]")
        self.assertEqual(outcome.code, 0, str(outcome))
        self.assertEqual([float(line) for line in (self.folder / "others.csv").read_text().splitlines()[1:]], outputs)

    def test_a_job_with_other_words_is_not_resumed(self):
        (self.folder / "checkpoints").mkdir()
        checkpoints = ["--set", "checkpoint.directory=checkpoints", "--set", "checkpoint.at_end=true"]
        self.assert_finished(self.train(*checkpoints, "--set", "train.epochs=1"))
        self.change(" Private", " Unheard-of")
        self.assert_refused(self.train(*checkpoints, "--set", "train.epochs=2"), 78,
                            "was trained with other values of data.columns.workclass than the training files have now")

    def test_a_word_instead_of_a_number_names_file_line_and_column(self):
        self.change("\n19, Private", "\nnineteen, Private")
        self.assert_refused(self.train(), 65, "adult-0.csv:28: 'nineteen' in column 'age', expected a finite number")

    def test_a_missing_column_is_named(self):
        self.change("workclass", "class", "adult-1.csv")
        self.assert_refused(self.train(), 65, "adult-1.csv:1: no column 'workclass' in the first line")

    def test_an_unknown_label_of_the_test_set_is_refused(self):
        self.change("<=50K.", "lots", "adult-1.csv")
        self.assert_refused(self.train(), 65, "adult-1.csv:", "the label 'lots' in column 'income' isn't one of the 2 labels")

    def test_two_labels_are_refused_with_their_line(self):
        self.job_file.write_text(self.job_file.read_text().replace('sex = { kind = "category" }', 'sex = { kind = "label" }'))
        self.assert_refused(self.train(), 78, "census.toml:", "data.columns.sex is the label already")

    def test_a_category_never_seen_in_training_has_a_number_of_its_own(self):
        self.change(" Private", " Unheard-of", "adult-1.csv")
        self.change(" White, Male, 0, 0, 40, United-States, <=50K.", " Green, Male, 0, 0, 40, Mars, <=50K.", "adult-1.csv")
        self.assert_finished(self.train("--set", "train.epochs=1"))

    def test_plan_says_why_it_does_not_know_the_sizes(self):
        outcome = self.run_program("disttrain", "plan", self.job_file, "--set", f"data.path={self.data}")
        self.assert_refused(outcome, 78, "follow from the words of the data files")


class CsvWithoutColumnsTest(SystemTest):
    """The last column is the label, and the others are known by their places alone."""

    def setUp(self):
        super().setUp()
        (self.folder / "checkpoints").mkdir()
        self.write("train.csv", "width,height,kind\n" + "1,0,cat\n0,1,dog\n1,1,Cat\n" * 20)
        self.job_file = self.folder / "pets.toml"
        self.job_file.write_text(f"""
[job]
name = "pets"
[model]
builtin = "mlp"
layers = [2, 4, 3]
[data]
format = "csv"
path = "{self.folder}"
files = "train.csv"
[train]
batch_size = 10
epochs = 1
[checkpoint]
directory = "checkpoints"
at_end = true
""")

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def train(self, *arguments):
        return self.up(self.job_file, *arguments)

    def test_a_job_with_other_labels_is_not_resumed(self):
        self.assert_finished(self.train())
        more = ["--set", "train.epochs=2"]
        text = (self.folder / "train.csv").read_text()
        self.write("train.csv", text.replace("Cat", "cat"))
        self.assert_refused(self.train(*more), 78, "was trained with other labels or columns than the csv files have now: "
                            "label 0 was 'Cat' and is 'cat' now")
        self.write("train.csv", text.replace("width,height", "height,width"))
        self.assert_refused(self.train(*more), 78, "the header's column 1 was 'width' and is 'height' now")
        self.write("train.csv", text)
        self.assert_finished(self.train(*more))

    def test_a_test_set_with_another_order_of_columns_is_refused(self):
        self.write("test.csv", "height,width,kind\n1,0,dog\n")
        self.assert_refused(self.train("--set", "evaluate.files=test.csv"), 65,
                            "test.csv:1: the header's column 1 is 'height', expected 'width' as in the training set")

    def test_records_to_predict_have_the_order_of_the_training_set(self):
        self.assert_finished(self.train())
        self.write("other.csv", "height,width,kind\n1,0,dog\n")
        predict = ["disttrain", "predict", "checkpoints/pets", "outputs.csv", "--data", self.folder, "--files", "other.csv"]
        outcome = self.run_program(*predict)
        self.assertEqual(outcome.code, 65, str(outcome))
        self.assertIn("other.csv:1: the header's column 1 is 'height', expected 'width' as in the training set", outcome.err)
        self.write("other.csv", "width,height,unknown\n1,0,dog\n")
        outcome = self.run_program(*predict)
        self.assertEqual(outcome.code, 0, str(outcome))


class ParquetTest(SystemTest):
    def train(self, columns, *arguments):
        job = self.folder / "parquet.toml"
        job.write_text(f"""
[job]
name = "parquet"
[model]
builtin = "mlp"
layers = [3, 4, 2]
[data]
format = "parquet"
path = "{ROOT / "tests" / "data" / "parquet"}"
files = "table.parquet"
[data.columns]
{columns}
point = {{ kind = "numeric", shape = [2] }}
is_new = {{ kind = "label" }}
[train]
batch_size = 2
epochs = 3
[evaluate]
files = "table.zstd.parquet"
""")
        return self.up(job, *arguments)

    def test_row_groups_are_read_in_each_order(self):
        for arguments in (["data.shuffle=epoch"], ["data.shuffle=none"], ["data.shuffle=blocks", "data.shuffle_window=1"]):
            with self.subTest(arguments):
                sets = [word for argument in arguments for word in ("--set", argument)]
                result = self.assert_finished(self.train('small = { kind = "numeric" }', *sets))
                self.assertEqual(result["evaluation"]["examples"], 5)

    def test_a_wrong_value_names_file_record_and_column(self):
        outcome = self.train('infinite = { kind = "numeric" }')
        self.assert_refused(outcome, 65, 'table.parquet", record 3: infinity in column \'infinite\'')


if __name__ == "__main__":
    unittest.main()
