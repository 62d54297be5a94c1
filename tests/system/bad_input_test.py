"""Mistakes of operators, in files and by strangers: each gives one clear error, and no running job is harmed."""
import gzip
import os
import resource
import shutil
import socket
import struct
import unittest

from harness import BIN, DIGITS, SystemTest
from ports import free_ports

CLUSTER = """
[cluster]
name = "{name}"
[chief]
address = "127.0.0.1:{port}"
state_directory = "{folder}/chief"
[metrics]
listen = "127.0.0.1:0"
[[ps]]
address = "127.0.0.1:{ps}"
[[worker]]
address = "127.0.0.1:{worker}"
"""


class BadInputTest(SystemTest):
    def test_misspelled_key_names_the_nearest_one(self):
        outcome = self.up(self.job(train="epohcs = 2"))
        self.assert_refused(outcome, 78, "epohcs", 'did you mean "epochs"', "quick.toml:")

    def test_wrong_type_and_range_are_reported_together(self):
        job = self.job(train='epochs = "many"', data="prefetch = 0")
        self.assert_refused(self.up(job), 78, "epochs", "prefetch")

    def test_key_of_a_later_version_is_refused(self):
        job = self.job()
        job.write_text(job.read_text().replace("[job]", "[job]\nexchange = \"allreduce\""))
        self.assert_refused(self.up(job), 78, "exchange", "not in this version")

    def test_check_applies_what_the_command_line_sets(self):
        job = self.job()
        self.assertEqual(self.run_program("disttrain", "check", job, "--set", "train.epochs=3").code, 0)
        self.assert_refused(self.run_program("disttrain", "check", job, "--set", "train.epochs=-3"), 78, "epochs", "--set")
        self.assert_refused(self.run_program("disttrain", "check", self.cluster(), "--set", "train.epochs=3"), 64,
                            "--set train.epochs=3: it changes job files, but none is given")

    def test_missing_job_file(self):
        self.assert_refused(self.up(self.folder / "absent.toml"), 66, "absent.toml")

    def test_file_that_isnt_one_is_refused_at_once(self):
        pipe = self.folder / "pipe.toml"
        os.mkfifo(pipe)
        for path, kind in ((pipe, "a pipe"), ("/dev/zero", "a device"), (self.folder, "a folder")):
            for program, *arguments in (("disttrain", "check"), ("disttrain", "plan"), ("chiefd", "--check", "--cluster")):
                with self.subTest(path=path, program=program):
                    self.assert_refused(self.run_program(program, *arguments, path), 66, f"it is {kind}; expected a TOML file")

    def test_hostile_file_is_refused_in_a_few_lines(self):
        deep = "a." * 60000 + "a = 1\n"
        wide = "".join(f"k{i} = 1\n" for i in range(90000))
        escapes = 'x = "\\u001b[2J"\n\x1b[2J = 1\n'
        for text in (deep, f"[{deep[:-5]}]", wide, "x = " + "[" * 100000, escapes):
            path = self.folder / "hostile.toml"
            path.write_text("[[ps]]\n" + text)
            for program, *arguments in (("disttrain", "check"), ("disttrain", "plan"), ("psd", "--check", "--cluster")):
                with self.subTest(text=text[:20], program=program):
                    outcome = self.run_program(program, *arguments, path)
                    self.assert_refused(outcome, 78, "hostile.toml:")
                    self.assertLess(len(outcome.err), 16000)
                    self.assertNotIn("\x1b", outcome.err)
        outcome = self.run_program("disttrain", "submit", self.job(), "--set", "a" + ".a" * 30000 + "=1")
        self.assert_refused(outcome, 64, "expected section.key=value")
        self.assertLess(len(outcome.err), 1000)

    def test_verbs_that_arent_there(self):
        self.assert_refused(self.run_program("disttrain", "stauts"), 64, "no verb 'stauts'; did you mean 'status'?")
        self.assert_refused(self.run_program("disttrain", "checkpoint", "lst"), 64,
                            "disttrain checkpoint: there is no verb 'lst'; did you mean 'list'?")
        self.assert_refused(self.run_program("disttrain", "checkpoint", "zzzzzz"), 64, "expected one of save, list, inspect")
        self.assert_refused(self.run_program("disttrain", ""), 64, "there is no verb ''")

    def test_verb_that_ends_something_is_only_proposed_to_who_all_but_wrote_it(self):
        for word, meant in (("stp", "stop"), ("sotp", "stop"), ("stopp", "stop"), ("kil", "kill")):
            self.assert_refused(self.run_program("disttrain", word), 64, f"no verb '{word}'; did you mean '{meant}'?")
        for word in ("skip", "snap", "pull", "bell", "stlp!", "k"):
            outcome = self.run_program("disttrain", word)
            self.assert_refused(outcome, 64, f"no verb '{word}'")
            for ends in ("stop", "kill"):
                self.assertNotIn(f"did you mean '{ends}'", outcome.err)

    def test_unknown_option_is_named_before_what_is_missing_for_it(self):
        for word in (["--jbo", "job.toml"], ["--jbo=job.toml"]):
            self.assert_refused(self.run_program("disttrain", "up", *word), 64,
                                "disttrain up: there is no option '--jbo'; did you mean '--job'?")

    def test_option_before_its_verb_is_told_where_it_belongs(self):
        self.assert_refused(self.run_program("disttrain", "checkpoint", "--cluster", self.cluster, "save"), 64,
                            "'--cluster' stands before the verb; write it after `disttrain checkpoint save`")

    def test_unknown_option_is_a_usage_error(self):
        self.assert_refused(self.up(self.job(), "--wrokers", "2"), 64)
        self.assert_refused(self.run_program("psd", "--idnex=0"), 64, "psd: there is no option '--idnex'; did you mean '--index'?")

    def test_what_is_missing_is_named_with_its_verb(self):
        self.assert_refused(self.run_program("disttrain"), 64, "disttrain: there is no verb; expected one of up, submit")
        self.assert_refused(self.run_program("disttrain", "checkpoint"), 64,
                            "disttrain checkpoint: there is no verb; expected one of save, list")
        self.assert_refused(self.run_program("disttrain", "submit"), 64, "disttrain submit: JOB is required")
        self.assert_refused(self.run_program("disttrain", "up"), 64, "disttrain up: --job is required: name the job file")
        job = self.job()
        self.assert_refused(self.run_program("disttrain", "up", job), 64,
                            f"disttrain up: {job} is a job file; write: disttrain up --job {job}")
        self.assert_refused(self.run_program("disttrain", "up", self.cluster()), 64, "--job is required")
        self.assert_refused(self.run_program("psd", "0"), 64, "psd: unexpected argument '0'")

    def test_number_that_is_none(self):
        for text in ("x", "-1", "2.5", "0", "1025", "99999999999"):
            self.assert_refused(self.run_program("disttrain", "plan", "job.toml", "--ps", text), 64,
                                f"disttrain plan: --ps: '{text}' isn't a number from 1 to 1024")

    def test_empty_value_stands_for_nothing(self):
        """An unset variable in a script: `disttrain stop "$JOB"` must not stop the running job."""
        for words in (["stop", ""], ["kill", ""], ["status", "--chief", ""], ["up", "--job", ""], ["checkpoint", "verify", ""],
                      ["checkpoint", "export", "", "x"], ["checkpoint", "diff", "", ""]):
            self.assert_refused(self.run_program("disttrain", *words), 64, "its value is empty")
        self.assert_refused(self.run_program("workerd", "--address", ""), 64, "workerd: --address: its value is empty")

    def test_name_that_no_job_can_have(self):
        for name in ("\udcff\udcfe", "\x1b[31mred", "x" * 100000):
            outcome = self.run_program("disttrain", "stop", name)
            self.assert_refused(outcome, 64, "there is no job '")
            self.assertNotIn("\x1b", outcome.err)
            self.assertLess(len(outcome.err), 1000)

    def test_file_in_the_place_of_a_job(self):
        for verb in ("status", "stop", "why"):
            self.assert_refused(self.run_program("disttrain", verb, "cl.toml"), 64,
                                f"disttrain {verb}: JOB: 'cl.toml' is a file; expected the name or number of a job (write a "
                                "cluster file after --cluster)")

    def test_working_folder_that_was_removed(self):
        gone = self.folder / "gone"
        gone.mkdir()
        remove = 'cd "$1" && rmdir "$1" && shift && exec "$@"'
        outcome = self.finish(self.start_command("bash", "-c", remove, "bash", gone, BIN / "disttrain", "checkpoint", "list", "x"))
        self.assert_refused(outcome, 66, "No such file or directory")

    def test_zero_tasks_are_a_usage_error(self):
        self.assert_refused(self.up(self.job(), ps=0), 64, "--ps")
        self.assert_refused(self.up(self.job(), workers=0), 64, "--workers")

    def cluster(self, text=CLUSTER, file="cluster.toml", **values):
        chief, ps, worker = free_ports(3)
        path = self.folder / file
        path.write_text(text.format(**{**dict(name="test", port=chief, ps=ps, worker=worker, folder=self.folder), **values}))
        return path

    def test_two_tasks_with_one_address(self):
        path = self.cluster(worker=7110, ps=7110)
        self.assert_refused(self.run_program("disttrain", "check", path), 78, "7110")
        self.assert_refused(self.run_program("psd", "--cluster", path), 78, "7110")

    def test_cluster_without_ps_or_workers(self):
        text = CLUSTER.split("[[ps]]")[0]
        self.assert_refused(self.run_program("disttrain", "check", self.cluster(text)), 78, "[[ps]]", "[[worker]]")

    def test_port_in_use(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            path = self.cluster(port=taken.getsockname()[1])
            self.assert_refused(self.run_program("chiefd", "--cluster", path), 69, str(taken.getsockname()[1]), "in use")

    def damaged_digits(self):
        folder = self.folder / "digits"
        shutil.copytree(DIGITS, folder)
        return folder

    def up_with(self, folder, *arguments):
        return self.up(self.job(), "--set", f'data.path="{folder}"', *arguments)

    def test_missing_data_folder(self):
        outcome = self.up_with(self.folder / "nowhere")
        self.assert_refused(outcome, 66, f'data folder "{self.folder}/nowhere" doesn\'t exist; set data.path to a folder')

    def test_missing_data_file(self):
        folder = self.damaged_digits()
        (folder / "train-images-idx3-ubyte.gz").unlink()
        self.assert_refused(self.up_with(folder), 66, "train-images-idx3-ubyte.gz")

    def test_truncated_data_file(self):
        file = self.damaged_digits() / "train-images-idx3-ubyte.gz"
        file.write_bytes(file.read_bytes()[:10000])
        self.assert_refused(self.up_with(file.parent), 65, "train-images-idx3-ubyte.gz")

    def test_corrupt_data_file(self):
        file = self.damaged_digits() / "train-images-idx3-ubyte.gz"
        content = bytearray(file.read_bytes())
        content[5000] ^= 0xFF
        file.write_bytes(content)
        self.assert_refused(self.up_with(file.parent), 65, "train-images-idx3-ubyte.gz")

    def write_labels(self, folder, labels):
        data = struct.pack(">II", 0x801, len(labels)) + bytes(labels)
        (folder / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(data))

    def test_fewer_labels_than_images(self):
        folder = self.damaged_digits()
        self.write_labels(folder, [1] * 5999)
        self.assert_refused(self.up_with(folder), 65, "5999", "6000")

    def test_labels_out_of_range(self):
        folder = self.damaged_digits()
        self.write_labels(folder, [1] * 5999 + [10])
        self.assert_refused(self.up_with(folder), 65, "10")

    def test_record_that_a_builtin_model_cant_take_is_named_with_its_file(self):
        (self.folder / "ratings.csv").write_text("0,1,5\n24,1,3\n")
        job = self.folder / "ratings.toml"
        job.write_text('[job]\nname = "ratings"\n[model]\nbuiltin = "matrix_factorization"\n'
                       "matrix_factorization = { users = 4, items = 5 }\n"
                       '[data]\npath = "."\nformat = "csv"\nfiles = "rat*.csv"\n[train]\nbatch_size = 2\nepochs = 1\n')
        outcome = self.up(job)
        self.assert_refused(outcome, 1, f"{self.folder}/rat*.csv: a record has the user 24; "
                            "model.matrix_factorization.users = 4 allows whole numbers from 0 to 3\n")
        categories = self.folder / "categories.toml"
        categories.write_text(job.read_text().replace("matrix_factorization = { users = 4, items = 5 }",
                                                      "wide_deep = { numeric = 1, categories = [4] }")
                              .replace("matrix_factorization", "wide_deep").replace("[data]", 'loss = "mse"\n[data]'))
        self.assert_refused(self.up(categories), 78, "but the records of data.files have 2: add [data.columns], which says what "
                            "each column of a csv file is to wide_deep")

    def test_model_that_does_not_fit_the_data(self):
        self.assert_refused(self.up(self.job(), "--set", "model.layers=[100, 10]"), 78, "784", "100")


class StrangersTest(SystemTest):
    """A job goes on while strangers send anything to every port."""

    def setUp(self):
        super().setUp()
        # The job is so long that it still runs when the last stranger has connected; `stop` ends it.
        self.process = self.start_up(self.job(train="epochs = 1000000"), "--set", 'transport.hello_timeout="500ms"',
                                     "--set", "transport.max_connections=64")
        status = self.until_steps(5)
        self.addresses = [(entry["task"], *entry["address"].rsplit(":", 1)) for entry in status["tasks"]]

    def assert_unharmed(self):
        before = self.until_steps(0)["global_step"]
        self.until_steps(before + 20)
        stop = self.run_program("disttrain", "stop")
        self.assertEqual(stop.code, 0, str(stop))
        outcome = self.finish(self.process)
        self.assertEqual(outcome.json["state"], "stopped", str(outcome))
        self.assertEqual(outcome.code, 2)

    def connect(self, host, port):
        return socket.create_connection((host, int(port)), timeout=10)

    def test_random_bytes_on_every_port(self):
        for task, host, port in self.addresses:
            for size in [1, 63, 64, 4096, 1 << 20]:
                with self.connect(host, port) as stranger:
                    try:
                        stranger.sendall(os.urandom(size))
                        stranger.shutdown(socket.SHUT_WR)
                        while stranger.recv(4096):
                            pass
                    except OSError:
                        pass  # the daemon closed the connection before the test had sent everything
        self.assert_unharmed()

    def test_frame_larger_than_allowed_is_refused_before_it_is_stored(self):
        header = struct.pack("<IHHIIQQQIB", 0x4E525444, 1, 1, 0, 0xFFFFFFFF, 0, 0, 1 << 60, 0, 0).ljust(64, b"\0")
        for task, host, port in self.addresses:
            with self.connect(host, port) as stranger:
                stranger.sendall(header)
                try:
                    self.assertEqual(stranger.recv(65536)[:0], b"")
                except ConnectionError:
                    pass
        self.assert_unharmed()

    def test_silent_peers_are_closed_after_the_hello_timeout(self):
        for task, host, port in self.addresses:
            with self.connect(host, port) as stranger:
                stranger.settimeout(20)
                try:
                    while stranger.recv(4096):
                        pass
                except ConnectionError:
                    pass
        self.assert_unharmed()

    def test_ten_thousand_connections(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        total = 10000
        if hard < total + 200:
            total = hard - 200
            print(f"only {total} connections: the limit on open files is {hard}")
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, total + 200), hard))
        strangers = []
        try:
            for number in range(total):
                task, host, port = self.addresses[number % len(self.addresses)]
                stranger = socket.socket()
                stranger.setblocking(False)
                stranger.connect_ex((host, int(port)))
                strangers.append(stranger)
            self.assert_unharmed()
        finally:
            for stranger in strangers:
                stranger.close()


class WrongClusterTest(SystemTest):
    def start_cluster(self):
        path = self.folder / "cluster.toml"
        chief, ps, worker = free_ports(3)
        values = dict(port=chief, ps=ps, worker=worker, folder=self.folder)
        path.write_text(CLUSTER.format(name="ours", **values))
        self.start("chiefd", "--cluster", path)
        return path, values

    def test_worker_of_another_cluster_is_refused(self):
        path, values = self.start_cluster()
        other = self.folder / "other.toml"
        other.write_text(CLUSTER.format(name="theirs", **values))
        outcome = self.run_program("workerd", "--cluster", other)
        self.assert_refused_daemon(outcome, 78, "theirs", "ours")

    def assert_refused_daemon(self, outcome, code, *words):
        self.assertEqual(outcome.code, code, str(outcome))
        for word in words:
            self.assertIn(word, outcome.err)

    def test_worker_with_another_cluster_file_is_warned(self):
        path, values = self.start_cluster()
        other = self.folder / "other.toml"
        other.write_text(CLUSTER.format(name="ours", **values) + "\n[transport]\ncredits = 8\n")
        self.start("workerd", "--cluster", other)
        self.start("psd", "--cluster", path)
        self.until_chief_answers(path)
        outcome = self.run_program("disttrain", "submit", "--cluster", path, "--json", self.job(train="epochs = 1"))
        self.assert_finished(outcome)
        logs = self.run_program("disttrain", "logs", "--cluster", path)
        self.assertIn("cluster file", logs.out)


if __name__ == "__main__":
    unittest.main()
