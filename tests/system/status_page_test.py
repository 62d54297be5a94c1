"""The chief's status page in a real browser: headless Chromium, which also leaves a picture of it in the build folder."""
import json
import re
import shutil
import subprocess
import unittest
import urllib.error
import urllib.request
from html.parser import HTMLParser

from harness import BIN, SystemTest
from ports import free_address

CHROMIUM = shutil.which("chromium")
PICTURE = BIN.parent / "status_page.png"


class Page(HTMLParser):
    """The page as the browser rendered it: texts by id, rows of its tables, and its shapes."""

    def __init__(self, text):
        super().__init__()
        self.open, self.texts, self.rows, self.shapes = [], {}, {}, []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag in ("polyline", "circle"):
            inside = next((identity for _, identity in reversed(self.open) if identity), None)
            self.shapes.append((inside, tag, attributes))
        if tag == "tr":
            self.rows.setdefault(self.identity(), []).append([])
        if tag == "td":
            self.rows[self.identity()][-1].append("")
        if tag not in ("meta", "link", "br", "progress"):
            self.open.append((tag, attributes.get("id")))

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, text):
        for _, identity in self.open:
            if identity:
                self.texts[identity] = self.texts.get(identity, "") + text
        if any(tag == "td" for tag, _ in self.open):
            self.rows[self.identity()][-1][-1] += text

    def identity(self):
        return next((identity for _, identity in reversed(self.open) if identity), None)

    def points(self, chart):
        """The points of a chart's lines, as (x, y)."""
        lines = [a["points"] for inside, tag, a in self.shapes if inside == chart and tag == "polyline"]
        return [tuple(map(float, point.split(","))) for line in lines for point in line.split()]

    def marks(self, chart):
        return [a for inside, tag, a in self.shapes if inside == chart and tag == "circle"]


class StatusPageTest(SystemTest):
    def browse(self, url, *what):
        """Loads the page and lets it poll for a few seconds. Fails if its console has an error."""
        command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                   "--disable-background-networking", "--disable-component-update", "--no-first-run", "--hide-scrollbars",
                   f"--user-data-dir={self.folder / 'chromium'}", "--window-size=1280,1100", "--enable-logging=stderr",
                   "--virtual-time-budget=3000", *what, url]
        run = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**self.environment,
                                                                                       "HOME": str(self.folder)})
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual([line for line in run.stderr.splitlines() if "CONSOLE" in line], [])
        return run.stdout

    def get(self, url):
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.read().decode()

    def start_chief(self):
        """Starts a chief without tasks. Returns the address of its page."""
        cluster = self.folder / "cluster.toml"
        cluster.write_text(f'[cluster]\nname = "quiet"\n[chief]\naddress = "{free_address()}"\n'
                           f'state_directory = "{self.folder / "chief"}"\n[metrics]\nlisten = "127.0.0.1:0"\n'
                           '[[ps]]\naddress = "127.0.0.1:1"\n[[worker]]\naddress = "127.0.0.1:2"\n')
        self.start("chiefd", "--cluster", cluster)
        self.until_chief_answers(cluster)
        return self.url(self.status("--cluster", cluster))

    def url(self, status):
        return f"http://{status['tasks'][0]['metrics']}/"

    def test_page_needs_nothing_from_elsewhere_and_changes_nothing(self):
        url = self.start_chief()
        page = self.get(url)
        self.assertEqual(set(re.findall(r"https?://[^\"' ]+", page)), {"http://www.w3.org/2000/svg"})
        self.assertIn("default-src 'none'", page)
        self.assertNotIn("innerHTML", page)
        for path in ["", "status.json"]:
            with self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(urllib.request.Request(url + path, data=b"{}", method="POST"), timeout=10)
            self.assertEqual(refused.exception.code, 405)
            refused.exception.close()

    def test_state_before_the_first_job_has_the_same_keys(self):
        state = json.loads(self.get(self.start_chief() + "status.json"))
        self.assertEqual((state["cluster"], state["job"]["job"], state["curve"]), ("quiet", None, []))
        self.assertEqual([task["task"] for task in state["job"]["tasks"]], ["chief/0", "ps/0", "worker/0"])
        self.assertEqual(state["events"][-1]["kind"], "chief_started")

    @unittest.skipUnless(CHROMIUM, "no chromium here (tools/setup installs it)")
    def test_page_before_the_first_job_says_so(self):
        page = Page(self.browse(self.start_chief(), "--dump-dom"))
        self.assertEqual(page.texts["job"], "no job yet")
        self.assertEqual(page.texts["cluster"], "quiet")
        self.assertRegex(page.texts["stale"], "^as of ")
        self.assertIn("no steps yet", page.texts["loss"])
        self.assertEqual([row[:2] for row in page.rows["tasks"]],
                         [["chief/0", "ready"], ["ps/0", "waiting"], ["worker/0", "waiting"]])

    @unittest.skipUnless(CHROMIUM, "no chromium here (tools/setup installs it)")
    def test_page_shows_the_cluster_in_training(self):
        (self.folder / "checkpoints").mkdir()
        job = self.job(job="shards = 2", train="epochs = 1000000\noptimizer = { rule = \"sgd\", learning_rate = 0.1 }",
                       evaluate="every_steps = 500")
        process = self.start_up(job, "--set", f"checkpoint.directory={self.folder / 'checkpoints'}", "--set",
                                'checkpoint.every="1s"', ps=2, workers=2)
        url = self.url(self.until_steps(1))

        def enough():
            state = json.loads(self.get(url + "status.json"))
            kinds = [event["kind"] for event in state["events"]]
            return len(state["curve"]) >= 20 and len(state["evaluations"]) >= 2 and "checkpoint" in kinds and state
        before = self.until("a curve, evaluations and a checkpoint", enough)
        page = Page(self.browse(url, "--dump-dom"))
        self.browse(url, f"--screenshot={PICTURE}")

        self.assertRegex(page.texts["stale"], "^as of ")
        self.assertRegex(page.texts["job"], r"^quick \(1, async\) is running")
        self.assertEqual([row[:2] for row in page.rows["tasks"]],
                         [["chief/0", "ready"], ["ps/0", "running"], ["ps/1", "running"], ["worker/0", "running"],
                          ["worker/1", "running"]])
        metrics = {name: (training, evaluation) for name, training, evaluation, *_ in page.rows["metrics"]}
        self.assertEqual(list(metrics)[:2], ["loss", "accuracy"])
        self.assertNotIn("–", (*metrics["loss"], metrics["accuracy"][1]))
        self.assertGreaterEqual(len(page.points("loss")), len(before["curve"]))
        self.assertGreaterEqual(len(page.marks("loss")), 2)
        self.assertGreaterEqual(len(page.points("speed")), len(before["curve"]) - 1)
        heights = {y for _, y in page.points("rate")}
        self.assertEqual(len(heights), 1, "a constant learning rate must be a horizontal line")
        xs = [x for x, _ in page.points("loss")]
        self.assertEqual(xs, sorted(xs))
        self.assertTrue(all(0 <= x <= 620 and 0 <= y <= 300 for x, y in page.points("loss")))
        events = [row[2] for row in page.rows["events"]]
        self.assertGreater(len(events), 5)
        self.assertLess(events.index("checkpoint"), events.index("chief_started"), "the newest event must come first")
        self.assertGreater(PICTURE.stat().st_size, 10_000)
        self.assertEqual(self.run_program("disttrain", "kill").code, 0)
        self.finish(process)


if __name__ == "__main__":
    unittest.main()
