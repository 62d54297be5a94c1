"""disttrain checkpoints and recovery: Whether a loss would cost much, and what losses have cost."""
from layout import dashboard, row
from panels import NONE_EXPECTED, stat, steps, timeseries

DASHBOARD = dashboard(
    "disttrain-checkpoints", "disttrain checkpoints and recovery",
    "Whether a loss would cost much, and what losses have cost.",
    tasks="label_values(disttrain_task_up{CLUSTER}, task)",
    rows=[
        row("Now",
            stat("Age of the newest checkpoint", "s",
                 "What a lost parameter server would cost. No data: there is none.",
                 ("time() - max (disttrain_checkpoint_last_success_timestamp_seconds{JOB} > 0)", "age"),
                 w=4),
            stat("Expected each", "s",
                 "checkpoint.every of the job. 0: none are taken by time.",
                 ("max (disttrain_checkpoint_expected_interval_seconds{JOB})", "interval"),
                 w=4),
            stat("Size", "bytes",
                 "Of the newest checkpoint, all its files.",
                 ("max (disttrain_checkpoint_bytes{JOB})", "size"),
                 w=4),
            stat("Failures", "short",
                 "Tries in the chosen time that failed. Expected: none. `disttrain events` has their "
                 "reasons.",
                 ("sum (increase(disttrain_checkpoint_failures_total{JOB}[RANGE]))", "failures"),
                 w=4, thresholds=NONE_EXPECTED, decimals=0),
            stat("Rollbacks", "short",
                 "In the chosen time. job.max_restarts of them within job.restart_window fail the job.",
                 ("sum (increase(disttrain_recoveries_total{JOB}[RANGE]))", "rollbacks"),
                 w=4, thresholds=NONE_EXPECTED, decimals=0),
            stat("Steps lost", "short",
                 "Steps that rollbacks in the chosen time undid.",
                 ("sum (increase(disttrain_steps_lost_total{JOB}[RANGE]))", "steps"),
                 w=4, decimals=0)),
        row("Checkpoints",
            timeseries("Age and expectation", "s",
                       "Since the newest checkpoint was committed, and checkpoint.every. Above twice that and a "
                       "minute the alert CheckpointStale fires.",
                       ("time() - max (disttrain_checkpoint_last_success_timestamp_seconds{JOB} > 0)", "age"),
                       ("max (disttrain_checkpoint_expected_interval_seconds{JOB})", "expected each"),
                       min=None),
            timeseries("Time of each part", "s",
                       "Mean. cut: a shard's loop stands still to copy; park: the first mark waits for the last; "
                       "write: the files; commit: manifest and rename; restore: reading one back.",
                       ("sum by (op) (rate(disttrain_checkpoint_seconds_sum{JOB}[RATE])) / sum by (op) "
                        "(rate(disttrain_checkpoint_seconds_count{JOB}[RATE]))", "{{op}}")),
            timeseries("Longest times", "s",
                       "95 of 100 took at most this long, in the last hour.",
                       ("histogram_quantile(0.95, sum by (op, le) "
                        "(increase(disttrain_checkpoint_seconds_bucket{JOB}[1h])))", "{{op}}")),
            timeseries("Committed and failed", "short",
                       "Checkpoints per interval of the picture.",
                       ('sum (increase(disttrain_checkpoint_seconds_count{JOB, op="commit"}[RATE]))', "committed"),
                       ("sum (increase(disttrain_checkpoint_failures_total{JOB}[RATE]))", "failed"),
                       bars=True),
            timeseries("Size over time", "bytes",
                       "Of the newest checkpoint. It changes with the layout, not with training.",
                       ("max (disttrain_checkpoint_bytes{JOB})", "size")),
            timeseries("Free disk for checkpoints", "bytes",
                       "As each task that writes them sees it, beside what two more checkpoints need: below it the "
                       "alert DiskFull fires.",
                       ('max by (task) (disttrain_disk_free_bytes{CLUSTER_TASKS, folder="checkpoints"})',
                        "{{task}} free"),
                       ("2 * max (disttrain_checkpoint_bytes{JOB})", "two checkpoints"))),
        row("Recovery",
            timeseries("Rollbacks and generation", "none",
                       "A generation begins with each rollback. The first is 1, or goes on from the job's folder of "
                       "checkpoints.",
                       ("max (disttrain_generation{JOB})", "generation"),
                       ("max (disttrain_recoveries_total{JOB})", "rollbacks"),
                       decimals=0),
            timeseries("Steps made again", "short",
                       "Steps that rollbacks undid: made once more.",
                       ("sum (increase(disttrain_steps_lost_total{JOB}[RATE]))", "steps"),
                       bars=True),
            timeseries("Processes that were lost", "short",
                       "crash: it ended by itself; silent: no heartbeat; left: in order; replaced: another process "
                       "took its place.",
                       ("sum by (reason) (increase(disttrain_restarts_total{CLUSTER_TASKS}[RATE]))", "{{reason}}"),
                       bars=True),
            timeseries("Time that recovery cost", "percentunit",
                       "Parts of the job's time that weren't steps: standing still for cuts, restoring, starting, "
                       "stalls.",
                       ('sum by (state) (rate(disttrain_goodput_seconds_total{JOB, '
                        'state=~"checkpoint|restore|stall|init"}[RATE])) / ignoring (state) group_left () sum '
                        '(rate(disttrain_goodput_seconds_total{JOB}[RATE]))', "{{state}}"),
                       w=12, stacked=True),
            timeseries("Goodput", "percentunit",
                       "Part of an hour's time in which the job made steps, from the recording rules of disttrain. "
                       "Expected: more than 90%.",
                       ("job:disttrain_goodput:ratio1h{JOB}", "goodput"),
                       w=12, max=1)),
    ])
