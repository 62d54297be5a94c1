"""Compares manual pages and completion with the programs' --help and with the keys in etc/."""
import gzip
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUILD", SOURCE / "build/release")).resolve()
PAGES = BUILD / "man"
COMPLETION = BUILD / "man/made/bash-completion/disttrain"
DAEMONS = ("chiefd", "psd", "workerd")


def run(*command, **more):
    return subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def help_of(program, *verb):
    outcome = run(BUILD / "bin" / program, *verb, "--help")
    assert outcome.returncode == 0, outcome.stderr
    return outcome.stdout


def flags_in(text):
    """Options as --help lists them: "-f,--follow"."""
    lines = re.findall(r"^  (-\S+)", text, re.MULTILINE)
    return sorted({flag for line in lines for flag in line.split(",")})


def verbs_in(text):
    return re.findall(r"^  (\S+)", text.split("Subcommands:")[1], re.MULTILINE) if "Subcommands:" in text else []


def every_verb():
    """(words after "disttrain", flags) of each verb, and of each verb below a verb."""
    found = []
    for verb in verbs_in(help_of("disttrain")):
        text = help_of("disttrain", verb)
        found.append(((verb,), flags_in(text)))
        found += [((verb, inner), flags_in(help_of("disttrain", verb, inner))) for inner in verbs_in(text)]
    return found


def page(name):
    """A page's text without roff's escapes and line breaks."""
    roff = gzip.open(next(PAGES.glob(f"{name}.[158].gz")), "rt").read()
    return re.sub(r"\s+", " ", re.sub(r"\\f.", "", roff.replace("\\-", "-").replace("\\&", "")).replace("\\_", "_"))


def keys_of(example):
    """section.key of every key in an example, also of keys behind a "#"."""
    keys, section = [], ""
    for line in (SOURCE / "etc" / example).read_text().splitlines():
        if found := re.match(r"\[+([a-z_.]+)\]+", line):
            section = found.group(1)
        elif found := re.match(r"(?:# )?([a-z0-9_]+) = ", line):
            keys.append(f"{section}.{found.group(1)}")
    return keys


class PagesTest(unittest.TestCase):
    def test_every_verb_has_a_page_with_every_flag(self):
        overview = page("disttrain")
        verbs = every_verb()
        self.assertGreater(len(verbs), 12)
        for words, flags in verbs:
            with self.subTest(words):
                self.assertIn(f"disttrain-{words[0]}(1)", overview)
                text = page(f"disttrain-{words[0]}")
                self.assertIn(" ".join(("disttrain", *words)), text)
                for flag in flags:
                    self.assertIn(flag, text)

    def test_every_daemon_has_a_page_with_every_flag(self):
        for daemon in DAEMONS:
            with self.subTest(daemon):
                text = page(daemon)
                for flag in flags_in(help_of(daemon)):
                    self.assertIn(flag, text)

    def test_every_key_is_in_the_page_of_its_file(self):
        for example, least in (("cluster.toml", 20), ("job.toml", 50)):
            roff = gzip.open(PAGES / f"disttrain-{example}.5.gz", "rt").read()
            keys = keys_of(example)
            self.assertGreater(len(keys), least)
            for key in keys:
                section, name = key.rsplit(".", 1)
                part = re.split(r'\.SS \[+' + re.escape(section) + r"\]+", roff)
                self.assertEqual(len(part), 2, f"{example} has no section {section} of its own in the page")
                self.assertIn(rf"\fB{name}\fR", part[1].split(".SS ")[0], key)

    def test_pages_have_no_error_of_form(self):
        if shutil.which("groff") is None:
            self.skipTest("no groff here (Debian's package groff)")
        for file in sorted(PAGES.glob("*.gz")):
            with self.subTest(file.name):
                outcome = run("groff", "-man", "-ww", "-z", "-Kutf8", "-Tutf8", input=gzip.open(file, "rt").read())
                # groff warns of narrow columns that it can't fill; these warnings are harmless.
                said = [line for line in outcome.stderr.splitlines() if "can't break line" not in line and
                        "cannot adjust line" not in line]
                self.assertEqual(said, [])


class CompletionTest(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="disttrain-completion-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def complete(self, line):
        """The words that bash would offer at the end of the line."""
        script = 'source "$1"; COMP_LINE=$2; COMP_POINT=${#2}; compopt() { :; }; _disttrain; printf "%s\\n" "${COMPREPLY[@]}"'
        outcome = run("bash", "-uc", script, "bash", COMPLETION, line, cwd=self.folder,
                      env={**os.environ, "DISTTRAIN_CLUSTER": str(self.folder / "cluster.toml")})
        self.assertEqual(outcome.stderr, "")
        return sorted(outcome.stdout.split())

    def test_every_verb_and_flag_is_offered(self):
        self.assertEqual(self.complete("disttrain "), sorted(verbs_in(help_of("disttrain"))))
        for words, flags in every_verb():
            with self.subTest(words):
                self.assertEqual(self.complete(" ".join(("disttrain", *words, "-"))), flags)
                self.assertIn(words[-1], self.complete(" ".join(("disttrain", *words[:-1], words[-1][:2]))))
        for daemon in DAEMONS:
            self.assertEqual(self.complete(f"{daemon} -"), flags_in(help_of(daemon)))

    def test_every_key_of_a_job_is_offered_for_set(self):
        offered = self.complete("disttrain submit --set ")
        for key in keys_of("job.toml"):
            self.assertIn(f"{key}=", offered)

    def test_choices_are_offered(self):
        self.assertEqual(self.complete("disttrain logs --level "), ["debug", "error", "info", "warn"])
        self.assertEqual(self.complete("disttrain checkpoint export --dtype b"), ["bf16"])
        self.assertEqual(self.complete("disttrain up --set train.mode=s"), ["ssp", "sync"])
        self.assertEqual(self.complete("disttrain up --set checkpoint.at_end="), ["false", "true"])

    def test_files_are_offered_by_their_kind(self):
        for name in ("job.toml", "notes.txt"):
            (self.folder / name).write_text("")
        (self.folder / "jobs").mkdir()
        self.assertEqual(self.complete("disttrain submit "), ["job.toml", "jobs"])
        self.assertEqual(self.complete("disttrain up --set train.mode=sync --job j"), ["job.toml", "jobs"])
        self.assertEqual(self.complete("disttrain checkpoint list "), ["jobs"])
        self.assertEqual(self.complete("psd --cluster j"), ["job.toml", "jobs"])

    def test_tasks_of_the_cluster_file_are_offered(self):
        (self.folder / "cluster.toml").write_text('[[ps]]\n[[worker]]\n[[worker]]\n# [[worker]]\n')
        self.assertEqual(self.complete("disttrain logs --task "), ["chief/0", "ps/0", "worker/0", "worker/1"])
        self.assertEqual(self.complete("disttrain logs -f --task w"), ["worker/0", "worker/1"])
        self.assertEqual(self.complete("disttrain logs --cluster none.toml --task "), ["chief/0"])

    def test_nothing_is_offered_where_nothing_is_known(self):
        self.assertEqual(self.complete("disttrain logs --since "), [])
        self.assertEqual(self.complete("disttrain nonsense --"), self.complete("disttrain --"))

    def test_script_is_clean(self):
        if shutil.which("shellcheck") is None:
            self.skipTest("no shellcheck here (Debian's package shellcheck)")
        outcome = run("shellcheck", "--exclude=SC2317", COMPLETION)
        self.assertEqual(outcome.stdout, "")


if __name__ == "__main__":
    unittest.main()
