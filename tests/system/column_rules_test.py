"""One rule for each kind of column, with real daemons: labels of a regression, predictions without labels, classes of
files with line ends, infinities, targets that are normalised, and words that the training set doesn't have. The unit
tests that use tests/input/column_rules_fixture.h have the whole table of docs/data.md."""
import csv
import io
import tarfile
import unittest

from harness import SystemTest

JOB = """
[job]
name = "rules"
[model]
builtin = "{builtin}"
{model}
[data]
format = "{format}"
path = "."
files = "{files}"
{data}
[train]
mode = "sync"
batch_size = 8
epochs = {epochs}
[train.optimizer]
rule = "{rule}"
learning_rate = {rate}
{more}
"""
LINEAR = 'layers = [1, 1]\nloss = "mse"'
X_Y = '[data.columns]\nx = { kind = "numeric" }\ny = { kind = "label" }'
SVM = '[data.columns]\nfeatures = { kind = "numeric", shape = [2] }\nlabel = { kind = "label" }'
CHECKPOINT = '[checkpoint]\ndirectory = "checkpoints"'


class ColumnRulesTest(SystemTest):
    def write(self, name, text):
        (self.folder / name).write_text(text)

    def job_of(self, data_format, files, data, builtin="linear", model=LINEAR, epochs=200, rule="sgd", rate=0.05, more=""):
        path = self.folder / "job.toml"
        path.write_text(JOB.format(builtin=builtin, model=model, format=data_format, files=files, data=data, epochs=epochs,
                                   rule=rule, rate=rate, more=more))
        return path

    def train(self, *arguments, **job):
        for name in ["checkpoints", "others"]:
            (self.folder / name).mkdir(exist_ok=True)
        return self.up(self.job_of(*arguments, **job), workers=1)

    def predict(self, files, out="out.csv"):
        outcome = self.run_program("disttrain", "predict", "checkpoints/rules", out, "--files", files)
        self.assertEqual(outcome.code, 0, str(outcome))
        return [float(line) for line in (self.folder / out).read_text().splitlines()[1:]], outcome

    def test_a_word_among_the_targets_of_a_regression_is_refused(self):
        for word in ["n/a", "2.5x", "2;5", "inf", "nan", ""]:
            with self.subTest(word=word):
                self.write("d.csv", f"x,y\n0,10.5\n1,20.5\n2,30.5\n3,{word}\n")
                self.assert_refused(self.train("csv", "d.csv", X_Y), 65, "d.csv:5: ", " in column 'y'")
                self.assert_refused(self.train("csv", "d.csv", ""), 65, "d.csv:5: ")
                self.write("d.jsonl", '{"x": 0, "y": 10.5}\n{"x": 3, "y": "%s"}\n' % word)
                self.assert_refused(self.train("jsonl", "d.jsonl", X_Y), 65, "d.jsonl\", record 1", " in column 'y'")
                if word:
                    self.write("d.svm", f"10.5 1:0\n{word} 1:3\n")
                    self.assert_refused(self.train("libsvm", "d.svm", SVM, model='layers = [2, 1]\nloss = "mse"'), 65,
                                        "d.svm\", record 1", " in column 'label'")

    def test_a_regression_takes_no_classes(self):
        self.write("d.csv", "x,y\n0,no\n1,yes\n")
        for data in [X_Y, ""]:
            self.assert_refused(self.train("csv", "d.csv", data), 65, "d.csv:2: the label 'no' ", 'model.loss = "mse" needs')

    def test_lines_of_libsvm_without_labels_are_predicted(self):
        self.write("train.svm", "1.5 1:1 2:2\n2.5 1:3 2:1\n")
        self.write("labels.svm", "0 1:1 2:2\n0 1:3 2:1\n")
        self.write("none.svm", "1:1 2:2\n1:3 2:1\n")
        model = 'layers = [2, 1]\nloss = "mse"'
        self.assert_finished(self.train("libsvm", "train.svm", SVM, model=model, more=CHECKPOINT))
        outputs, _ = self.predict("labels.svm")
        self.assertAlmostEqual(outputs[0], 1.5, delta=0.01)
        self.assertEqual(self.predict("none.svm")[0], outputs)
        self.write("train.svm", "1:0.5 1:1\n0:2 2:3\n1:0.7 2:1\n")
        self.assert_refused(self.train("libsvm", "train.svm", SVM, model=model), 65,
                            "train.svm\", record 0: '1:0.5' in column 'label'", "weight")
        result = self.assert_finished(self.train("libsvm", "train.svm", SVM + '\nweight = { kind = "weight" }', model=model))
        self.assertEqual(result["state"], "finished")

    def test_classes_of_files_with_line_ends_are_numbers(self):
        for end in ["\n", " ", "\r\n", ""]:
            with self.subTest(end=end), tarfile.open(self.folder / "d.tar", "w") as archive:
                for i, label in enumerate([0, 1, 2, 10]):
                    for extension, content in [("cls", f"{label}{end}"), ("num", "1\n")]:
                        member = tarfile.TarInfo(f"{i:03}.{extension}")
                        member.size = len(content)
                        archive.addfile(member, io.BytesIO(content.encode()))
            data = '[data.columns]\nnum = { kind = "numeric" }\ncls = { kind = "label" }'
            outcome = self.train("webdataset", "d.tar", data, model="layers = [1, 10]", epochs=1)
            self.assert_refused(outcome, 65, "go up to 10, but the model has 10 outputs")
            self.assert_finished(self.train("webdataset", "d.tar", data, model="layers = [1, 11]", epochs=1))

    def test_an_infinity_is_an_error_with_record_and_column(self):
        self.write("d.jsonl", '{"x": 1, "y": 0}\n{"x": Infinity, "y": 1}\n')
        for normalise in ["", ', normalise = "standard"', ", missing = 0"]:
            data = f'[data.columns]\nx = {{ kind = "numeric"{normalise} }}\ny = {{ kind = "label" }}'
            outcome = self.train("jsonl", "d.jsonl", data, model="layers = [1, 2]", epochs=1)
            self.assert_refused(outcome, 65, "d.jsonl\", record 1", "infinity in column 'x'")

    def regression(self):
        """y = 1000 + 100 x, and its predictions."""
        self.write("d.csv", "x,y\n" + "".join(f"{x / 10},{1000 + 10 * x}\n" for x in range(-20, 20)))

    def test_normalised_targets_are_undone(self):
        self.regression()
        data = '[data.columns]\nx = { kind = "numeric" }\ny = { kind = "label", normalise = "standard" }'
        more = CHECKPOINT + '\n[evaluate]\nfiles = "d.csv"'
        model = LINEAR + '\nmetrics = { mae = "mae", mse = "mse" }'
        result = self.assert_finished(self.train("csv", "d.csv", data, model=model, epochs=3, more=more))
        outputs, _ = self.predict("d.csv")
        with open(self.folder / "d.csv") as file:
            targets = [float(row["y"]) for row in csv.DictReader(file)]
        errors = [output - target for output, target in zip(outputs, targets, strict=True)]
        mse = sum(error * error for error in errors) / len(errors)
        self.assertGreater(mse, 1, "the model must not be perfect yet")
        self.assertAlmostEqual(result["evaluation"]["loss"] / mse, 1, delta=1e-3)
        self.assertAlmostEqual(result["evaluation"]["metrics"]["mse"] / mse, 1, delta=1e-3)
        mae = sum(abs(error) for error in errors) / len(errors)
        self.assertAlmostEqual(result["evaluation"]["metrics"]["mae"] / mae, 1, delta=1e-3)
        result = self.assert_finished(self.train("csv", "d.csv", data, model=model, epochs=100, more=more))
        self.assertLess(result["evaluation"]["metrics"]["mae"], 1)

    def test_normalised_targets_are_those_of_an_evaluator(self):
        self.regression()
        (self.folder / "checkpoints").mkdir()
        data = '[data.columns]\nx = { kind = "numeric" }\ny = { kind = "label", normalise = "standard" }'
        job = self.job_of("csv", "d.csv", data, epochs=100, more=CHECKPOINT + '\n[evaluate]\nfiles = "d.csv"')
        result = self.assert_finished(self.up(job, "--evaluators", 1, workers=1))
        self.assertLess(result["evaluation"]["loss"], 1)

    def test_words_that_training_never_saw(self):
        lines = [f"{site},{100 + i % 3}\n" for i in range(60) for site in ("a", "b", f"rare{i}")]
        self.write("train.csv", "site,y\n" + "".join(lines))
        self.write("test.csv", "site,y\na,101\nnew,101\nother,101\n")
        data = '[data.columns]\nsite = { kind = "category", min_count = 2 }\ny = { kind = "label" }'
        more = CHECKPOINT + '\n[evaluate]\nfiles = "test.csv"'
        wide = dict(builtin="wide_deep", model='wide_deep = { hidden = [8], embedding = 4 }\nloss = "mse"', rule="adam", rate=0.05, more=more)
        result = self.assert_finished(self.train("csv", "train.csv", data, epochs=40, **wide))
        self.assertIn("words that the vocabulary lacks (site: 2 records)", " ".join(result["warnings"]))
        outputs, outcome = self.predict("test.csv")
        for output in outputs:
            self.assertAlmostEqual(output, 101, delta=5)
        self.assertIn("warning: some of the 3 records to evaluate or predict have words that the vocabulary lacks (site: 2 records)", outcome.err)
        self.assertNotIn("min_count", outcome.err)
        never = data.replace(", min_count = 2", "")
        result = self.assert_finished(self.train("csv", "train.csv", never, epochs=1, **{**wide, "more": more.replace("checkpoints", "others")}))
        self.assertIn("set data.columns.site.min_count to 2 or more", " ".join(result["warnings"]))
        self.write("train.csv", "site,y\n" + "a,100\nb,102\n" * 40)
        result = self.assert_finished(self.train("csv", "train.csv", data, epochs=1, **{**wide, "more": ""}))
        self.assertIn("none trains the category of unknown words", " ".join(result["warnings"]))

    def test_words_that_training_never_saw_in_a_test_set_larger_than_memory(self):
        self.write("train.csv", "site,y\n" + "".join(f"{site},100\n" for _ in range(60) for site in "ab"))
        self.write("test.csv", "site,y\n" + "a,101\nnew,101\nother,101\n" * 200)
        data = 'memory = "1KiB"\n[data.columns]\nsite = { kind = "category" }\ny = { kind = "label" }'
        for evaluators in [0, 1]:
            with self.subTest(evaluators=evaluators):
                folder = f"checkpoints{evaluators}"
                (self.folder / folder).mkdir()
                job = self.job_of("csv", "train.csv", data, epochs=4, builtin="wide_deep", rule="adam",
                                  model='wide_deep = { hidden = [8], embedding = 4 }\nloss = "mse"',
                                  more=f'[checkpoint]\ndirectory = "{folder}"\nevery_steps = 20\n[evaluate]\nfiles = "test.csv"')
                result = self.assert_finished(self.up(job, "--evaluators", evaluators, workers=1))
                told = [warning for warning in result["warnings"] if "vocabulary lacks (site: 400 records)" in warning]
                self.assertEqual(len(told), 1, result["warnings"])

    def test_a_csv_header_of_numbers_is_a_warning(self):
        self.write("d.csv", "0,1,kind\n" + "1,2,cat\n3,4,dog\n" * 20)
        result = self.assert_finished(self.train("csv", "d.csv", "", builtin="mlp", model="layers = [2, 3]", epochs=1))
        self.assertIn("d.csv:1: the label 'kind' is on no other line", " ".join(result["warnings"]))


if __name__ == "__main__":
    unittest.main()
