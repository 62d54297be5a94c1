"""A manual page is made completely or not at all, also in a folder whose path has spaces."""
import gzip
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "tools/reference/page"


class PageTest(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="disttrain page it's "))  # a shell would split this path
        self.addCleanup(shutil.rmtree, self.folder)
        self.source = self.folder / "the page.1.scd"
        self.source.write_text("words\n")
        self.page = self.folder / "the page.1.gz"

    def make(self, script):
        scdoc = self.folder / "my scdoc"
        scdoc.write_text("#!/bin/sh\n" + script)
        scdoc.chmod(0o755)
        return subprocess.run([PAGE, scdoc, "86400", self.source, self.page], capture_output=True, text=True)

    def test_page_holds_what_was_made(self):
        run = self.make('echo "at $SOURCE_DATE_EPOCH:"; cat\n')
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(gzip.decompress(self.page.read_bytes()), b"at 86400:\nwords\n")

    def test_failing_generator_fails_and_leaves_no_page(self):
        for script in ("exit 3\n", "cat; exit 3\n", "kill $$\n"):
            with self.subTest(script):
                self.assertNotEqual(self.make(script).returncode, 0)
                self.assertEqual(sorted(os.listdir(self.folder)), ["my scdoc", "the page.1.scd"])

    def test_missing_source_fails_and_leaves_no_page(self):
        self.source.unlink()
        self.assertNotEqual(self.make("cat\n").returncode, 0)
        self.assertFalse(self.page.exists())


if __name__ == "__main__":
    unittest.main()
