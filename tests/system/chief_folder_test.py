"""Problems between a chief and its journal: another chief, a damaged file, closed standard streams."""
import os
import re
import shutil
import unittest

from harness import BIN, SystemTest
from ports import free_address

PROGRAMS = {"chief": "chiefd", "ps": "psd", "worker": "workerd"}


class ChiefFolderTest(SystemTest):
    def setUp(self):
        super().setUp()
        self.state = self.folder / "chief"
        self.chief, self.ps, self.worker = free_address(), free_address(), free_address()
        self.cluster = self.write_cluster("cluster", self.state)

    def write_cluster(self, name, state):
        path = self.folder / f"{name}.toml"
        path.write_text(f'[chief]\naddress = "{self.chief}"\nstate_directory = "{state}"\n'
                        f'[[ps]]\naddress = "{self.ps}"\n[[worker]]\naddress = "{self.worker}"\n')
        return path

    def start_chief(self):
        chief = self.start("chiefd", "--cluster", self.cluster)
        self.until_chief_answers(self.cluster)
        return chief

    def stop(self, process):
        process.terminate()
        self.assertEqual(self.finish(process).code, 0)

    def test_second_chief_on_the_folder_is_told_who_has_it(self):
        chief = self.start_chief()
        outcome = self.run_program("chiefd", "--cluster", self.cluster)
        self.assertEqual(outcome.code, 78, str(outcome))
        self.assertIn(f"another chief (process {chief.pid}) keeps its journal in {self.state}", outcome.err)

    def test_second_chief_on_the_port_is_told_of_that_port(self):
        self.start_chief()
        outcome = self.run_program("chiefd", "--cluster", self.write_cluster("other", self.folder / "other"))
        self.assertEqual(outcome.code, 69, str(outcome))
        self.assertIn(f"can't listen on {self.chief}", outcome.err)
        self.assertNotIn("metrics", outcome.err)

    def test_damaged_journal_is_told_and_salvaged(self):
        for _ in range(2):
            self.stop(self.start_chief())
        journal = self.state / "journal"
        damaged = bytearray(journal.read_bytes())
        damaged[36864 + 20] ^= 1  # flips a bit in the first record of the journal
        journal.write_bytes(damaged)
        outcome = self.run_program("chiefd", "--cluster", self.cluster)
        self.assertEqual(outcome.code, 65, str(outcome))
        for word in [str(journal), "damaged", "chiefd --salvage", "nothing was changed"]:
            self.assertIn(word, outcome.err)
        self.assertEqual(journal.read_bytes(), damaged)
        outcome = self.run_program("chiefd", "--cluster", self.cluster, "--salvage")
        self.assertEqual(outcome.code, 0, str(outcome))
        self.assertEqual((self.state / "journal.damaged-1").read_bytes(), damaged)
        chief = self.start_chief()
        outcome = self.run_program("chiefd", "--cluster", self.cluster, "--salvage")
        self.assertEqual(outcome.code, 78, "the chief lives: " + str(outcome))
        chief.terminate()
        self.assertGreater(int(re.search(r"; term (\d+)", self.finish(chief).err).group(1)), 2)
        outcome = self.run_program("chiefd", "--cluster", self.cluster, "--salvage")
        self.assertEqual((outcome.code, "isn't damaged" in outcome.out), (0, True), str(outcome))

    def test_old_copy_of_the_folder_is_named_by_the_chief_and_its_tasks(self):
        self.stop(self.start_chief())
        old = self.folder / "backup"
        shutil.copytree(self.state, old)
        chief = self.start_chief()
        ps = self.start("psd", "--cluster", self.cluster, "--index", "0")
        self.until("the ps to be there", lambda: self.task("ps/0")["state"] == "ready")
        self.stop(chief)
        # The chief runs on the old copy and begins term 2 again. For the tasks, this is another chief of the same term.
        self.write_cluster("cluster", old)
        chief = self.start_chief()
        self.until("the chief to say why it is alone",
                   lambda: "this chief's state directory is an old copy" in self.task("ps/0")["reason"])
        self.stop(chief)
        self.write_cluster("cluster", self.state)
        chief = self.start_chief()
        self.until("the ps to be back", lambda: self.task("ps/0")["state"] == "ready")
        ps.kill()
        self.assertIn("state directory is an old copy", self.finish(ps).err)

    def task(self, name):
        return next(task for task in self.status("--cluster", self.cluster)["tasks"] if task["task"] == name)

    def test_emptied_journal_is_no_new_one(self):
        self.stop(self.start_chief())
        for size in [0, 11]:
            os.truncate(self.state / "journal", size)
            outcome = self.run_program("chiefd", "--cluster", self.cluster)
            self.assertEqual(outcome.code, 65, str(outcome))

    def test_closed_standard_streams_are_nobodys_files(self):
        """The daemon takes descriptors 0 to 2 before it opens any file, so that no file receives what goes to
        stderr."""
        closed = ["sh", "-c", 'exec "$@" 0<&- 1>&- 2>&-', "sh"]
        commands = {role: [program, "--cluster", self.cluster] for role, program in PROGRAMS.items()}
        commands["command line"] = ["disttrain", "submit", self.job(), "--cluster", self.cluster]
        for role, command in commands.items():
            if role == "ps":
                self.until_chief_answers(self.cluster)
            program, *arguments = command
            process = self.start_command(*closed, BIN / program, *arguments)
            with self.subTest(role):
                self.until("its streams", lambda: self.streams(process.pid) == ["/dev/full", "/dev/null", "/dev/null"])
        self.until("the job's end", lambda: (self.status("--cluster", self.cluster) or {}).get("state") == "finished")
        self.assertEqual((self.state / "journal").read_bytes()[:8], b"DTRNJRNL")
        self.assertNotIn(b"chiefd 0.", (self.state / "journal").read_bytes())

    def streams(self, pid):
        try:
            return [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in range(3)]
        except OSError:
            return None


if __name__ == "__main__":
    unittest.main()
