"""disttrain checkpoints and recovery: what a loss would cost now, and what losses have cost."""
from layout import dashboard, row
from panels import NONE_EXPECTED, stat, steps, timeseries

DASHBOARD = dashboard(
    "disttrain-checkpoints", "disttrain checkpoints and recovery",
    "What a loss would cost now, and what losses have cost.",
    tasks="label_values(disttrain_task_up{CLUSTER}, task)",
    rows=[
        row("Now",
            stat("Age of the newest checkpoint", "s",
                 "The training time that a lost parameter server would cost. No data: there is no checkpoint.",
                 ("time() - max (disttrain_checkpoint_last_success_timestamp_seconds{JOB} > 0)", "age"),
                 w=4),
            stat("Expected every", "s",
                 "checkpoint.every of the job. 0: no checkpoints by time.",
                 ("max (disttrain_checkpoint_expected_interval_seconds{JOB})", "interval"),
                 w=4),
            stat("Size", "bytes",
                 "All files of the newest checkpoint.",
                 ("max (disttrain_checkpoint_bytes{JOB})", "size"),
                 w=4),
            stat("Failures", "short",
                 "Failed attempts at a checkpoint in the chosen time. Expected: none. `disttrain events` has their "
                 "reasons.",
                 ("sum (increase(disttrain_checkpoint_failures_total{JOB}[RANGE]))", "failures"),
                 w=4, thresholds=NONE_EXPECTED, decimals=0),
            stat("Rollbacks", "short",
                 "Rollbacks in the chosen time. More than job.max_restarts within job.restart_window fail the job.",
                 ("sum (increase(disttrain_recoveries_total{JOB}[RANGE]))", "rollbacks"),
                 w=4, thresholds=NONE_EXPECTED, decimals=0),
            stat("Steps lost", "short",
                 "Steps that rollbacks in the chosen time undid.",
                 ("sum (increase(disttrain_steps_lost_total{JOB}[RANGE]))", "steps"),
                 w=4, decimals=0)),
        row("Checkpoints",
            timeseries("Age and expectation", "s",
                       "Time since the newest checkpoint was committed, and checkpoint.every. Above twice "
                       "checkpoint.every plus a minute the alert CheckpointStale fires.",
                       ("time() - max (disttrain_checkpoint_last_success_timestamp_seconds{JOB} > 0)", "age"),
                       ("max (disttrain_checkpoint_expected_interval_seconds{JOB})", "expected every"),
                       min=None),
            timeseries("Time of each part", "s",
                       "Mean time. cut: a shard's loop pauses to copy; park: the first mark waits for the last; "
                       "write: writing the files; commit: manifest and rename; restore: reading a checkpoint back.",
                       ("sum by (op) (rate(disttrain_checkpoint_seconds_sum{JOB}[RATE])) / sum by (op) "
                        "(rate(disttrain_checkpoint_seconds_count{JOB}[RATE]))", "{{op}}")),
            timeseries("Longest times", "s",
                       "95 % of the last hour's checkpoints took at most this long.",
                       ("histogram_quantile(0.95, sum by (op, le) "
                        "(increase(disttrain_checkpoint_seconds_bucket{JOB}[1h])))", "{{op}}")),
            timeseries("Committed and failed", "short",
                       "Checkpoints per interval of the graph.",
                       ('sum (increase(disttrain_checkpoint_seconds_count{JOB, op="commit"}[RATE]))', "committed"),
                       ("sum (increase(disttrain_checkpoint_failures_total{JOB}[RATE]))", "failed"),
                       bars=True),
            timeseries("Size over time", "bytes",
                       "Size of the newest checkpoint. It changes with the layout, not with training.",
                       ("max (disttrain_checkpoint_bytes{JOB})", "size")),
            timeseries("Free disk for checkpoints", "bytes",
                       "Free space on the disk of each task that writes checkpoints, and the space that two more "
                       "checkpoints need. Below that the alert DiskFull fires.",
                       ('max by (task) (disttrain_disk_free_bytes{CLUSTER_TASKS, folder="checkpoints"})',
                        "{{task}} free"),
                       ("2 * max (disttrain_checkpoint_bytes{JOB})", "two checkpoints"))),
        row("Recovery",
            timeseries("Rollbacks and generation", "none",
                       "Each rollback begins a new generation. The first is 1, or 1 more than the newest in the job's "
                       "folder of checkpoints.",
                       ("max (disttrain_generation{JOB})", "generation"),
                       ("max (disttrain_recoveries_total{JOB})", "rollbacks"),
                       decimals=0),
            timeseries("Steps made again", "short",
                       "Steps that rollbacks undid, and that are made again.",
                       ("sum (increase(disttrain_steps_lost_total{JOB}[RATE]))", "steps"),
                       bars=True),
            timeseries("Processes that were lost", "short",
                       "crash: the process died; silent: no heartbeat; left: in good order; replaced: another process "
                       "took its place.",
                       ("sum by (reason) (increase(disttrain_restarts_total{CLUSTER_TASKS}[RATE]))", "{{reason}}"),
                       bars=True),
            timeseries("Time that recovery cost", "percentunit",
                       "Shares of the job's time that made no steps: waiting for checkpoints, restoring, starting, "
                       "stalls.",
                       ('sum by (state) (rate(disttrain_goodput_seconds_total{JOB, '
                        'state=~"checkpoint|restore|stall|init"}[RATE])) / ignoring (state) group_left () sum '
                        '(rate(disttrain_goodput_seconds_total{JOB}[RATE]))', "{{state}}"),
                       w=12, stacked=True),
            timeseries("Goodput", "percentunit",
                       "Share of the last hour in which the job made steps, from disttrain's recording rules. "
                       "Expected: more than 90%.",
                       ("job:disttrain_goodput:ratio1h{JOB}", "goodput"),
                       w=12, max=1)),
    ])
