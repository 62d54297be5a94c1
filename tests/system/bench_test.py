"""disttrain bench ps, update and step: small runs of the measurements. The tests check the keys of the results, not the speeds."""
import os
import signal
import unittest

from harness import SystemTest

SPREAD = ["min", "median", "max"]
RULES = ["sgd", "momentum", "nesterov", "adagrad", "rmsprop", "adam", "adamw", "lamb", "ftrl"]


class BenchTest(SystemTest):
    def assert_spread(self, spread):
        self.assertEqual(list(spread), SPREAD)
        self.assertLessEqual(spread["min"], spread["median"])
        self.assertLessEqual(spread["median"], spread["max"])

    def assert_nothing_left(self):
        """No file and no process of a measurement is left."""
        self.assertEqual(sorted(os.listdir(self.folder)), [])
        self.assertEqual(self.processes_of_this_test(), [])

    def test_ps(self):
        for transport in ("tcp", "shm"):
            with self.subTest(transport):
                self.assert_measures_ps(transport)

    def assert_measures_ps(self, transport):
        outcome = self.run_program("disttrain", "bench", "ps", "--transport", transport, "--sizes", "4K,2M", "--ps", "2",
                                   "--workers", "2", "--rounds", "2", "--json")
        self.assertEqual(outcome.code, 0, outcome)
        result = outcome.json
        self.assertEqual({key: result[key] for key in ("transport", "ps", "workers", "rounds")},
                         {"transport": transport, "ps": 2, "workers": 2, "rounds": 2})
        self.assertEqual(result["cores"], "apart" if len(os.sched_getaffinity(0)) >= 4 else "free")
        self.assertEqual([size["bytes"] for size in result["sizes"]], [4096, 2 << 20])
        for size in result["sizes"]:
            self.assertGreater(size["ps_peak_bytes"], 1 << 20)
            self.assertGreater(size["worker_peak_bytes"], 1 << 20)
            for exchange in ("push", "pull", "push_pull"):
                for figure in ("us", "gb_per_second", "ps_cpu_us", "ps_wakeups", "worker_cpu_us", "worker_wakeups"):
                    self.assert_spread(size[exchange][figure])
                self.assertGreater(size[exchange]["us"]["min"], 0.0)
                self.assertGreater(size[exchange]["ps_cpu_us"]["min"], 0.0)
        self.assert_nothing_left()

    def test_ps_prints_a_row_for_each_exchange(self):
        outcome = self.run_program("disttrain", "bench", "ps", "--sizes", "4K", "--rounds", "1", "--cores", "free")
        self.assertEqual(outcome.code, 0, outcome)
        rows = [line.split() for line in outcome.out.splitlines()]
        self.assertEqual([row[0] for row in rows], ["transport", "size", "4K", "4K", "4K"], outcome)

    def test_ps_listens_at_the_address(self):
        outcome = self.run_program("disttrain", "bench", "ps", "--address", "203.0.113.1")
        self.assertEqual(outcome.code, 78, outcome)
        self.assertIn("can't listen on 203.0.113.1:0: it is not an address of this host", outcome.err)
        self.assert_nothing_left()

    def test_update(self):
        outcome = self.run_program("disttrain", "bench", "update", "--sizes", "4K,1M", "--rounds", "2", "--json")
        self.assertEqual(outcome.code, 0, outcome)
        result = outcome.json
        self.assertEqual(result["rounds"], 2)
        self.assertEqual([(row["rule"], row["dtype"]) for row in result["rules"]],
                         [(rule, dtype) for rule in RULES for dtype in ("float32", "float64")])
        for sizes in [result["memcpy"], *(row["sizes"] for row in result["rules"])]:
            self.assertEqual([size["bytes"] for size in sizes], [4096, 1 << 20])
            for size in sizes:
                self.assert_spread(size["gb_per_second"])
                self.assertGreater(size["gb_per_second"]["min"], 0.0)

    def test_step(self):
        for options in [(), ("--random",), ("--threads", "2")]:
            with self.subTest(options):
                outcome = self.run_program("disttrain", "bench", "step", self.job(), *options, "--rounds", "2", "--json")
                self.assertEqual(outcome.code, 0, outcome)
                result = outcome.json
                self.assertEqual({key: result[key] for key in ("parameters", "batch_size", "threads", "rounds")},
                                 {"parameters": 784 * 32 + 32 + 32 * 10 + 10, "batch_size": 50,
                                  "threads": 2 if options[:1] == ("--threads",) else 1, "rounds": 2})
                for figure in ("ms", "cpu_ms", "examples_per_second"):
                    self.assert_spread(result[figure])
                    self.assertGreater(result[figure]["min"], 0.0)

    def test_step_prints_a_row_for_each_figure(self):
        outcome = self.run_program("disttrain", "bench", "step", self.job(), "--rounds", "1")
        self.assertEqual(outcome.code, 0, outcome)
        self.assertEqual([line.split("  ")[0] for line in outcome.out.splitlines()[1:]],
                         ["ms per step", "CPU ms per step", "examples/s"])

    def test_step_of_a_bad_job_is_one_sentence(self):
        for command, code, words in [(["missing.toml"], 66, "missing.toml: can't be read"),
                                     ([self.job(), "--set", "data.path=missing"], 66, "doesn't exist"),
                                     ([self.job(), "--set", "train.batch_size=0"], 78, "train.batch_size")]:
            with self.subTest(words):
                outcome = self.run_program("disttrain", "bench", "step", *command)
                self.assertEqual(outcome.code, code, outcome)
                self.assertIn(words, outcome.err)
                self.assertEqual(outcome.out, "")

    def test_bad_options_are_one_sentence(self):
        for options, code, words in [(["--sizes", "5"], 64, "'5' isn't a size"),
                                     (["--sizes", "4K,,1M"], 64, "'' isn't a size"),
                                     (["--sizes", "4", "--ps", "2"], 64, "4 is too small for 2 ps"),
                                     (["--transport", "pigeon"], 78, '"pigeon" is unknown')]:
            with self.subTest(options):
                outcome = self.run_program("disttrain", "bench", "ps", *options)
                self.assertEqual(outcome.code, code, outcome)
                self.assertIn(words, outcome.err)
                self.assertEqual(outcome.out, "")
                self.assert_nothing_left()

    def test_neither_a_job_nor_a_verb(self):
        outcome = self.run_program("disttrain", "bench")
        self.assertEqual(outcome.code, 64, outcome)
        self.assertIn("there is no job file and no verb", outcome.err)

    def test_an_option_of_a_job_before_the_verb_is_refused(self):
        outcome = self.run_program("disttrain", "bench", "--ps", "2", "ps")
        self.assertEqual(outcome.code, 64, outcome)
        self.assertIn("write it after `bench ps`", outcome.err)

    def test_an_interrupt_ends_the_measurement_and_leaves_nothing(self):
        process = self.start("disttrain", "bench", "ps", "--sizes", "4K", "--rounds", "10000")
        self.until("the run folder", lambda: os.listdir(self.folder))
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(process).code, 130)
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
