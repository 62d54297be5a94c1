"""disttrain worker: phases of a step, input, and which worker is slower than the others."""
from layout import dashboard, row
from panels import phases, red_from, timeseries

DASHBOARD = dashboard(
    "disttrain-worker", "disttrain worker", "Phases of a step, input, and which worker is slower than the others.",
    tasks="label_values(disttrain_worker_steps_total{JOB}, task)",
    rows=[
        row("Phases",
            phases("TASKS", who="the chosen workers"),
            timeseries("Time of each phase", "s",
                       "Mean of each phase of a step, over the chosen workers.",
                       ("sum by (phase) (rate(disttrain_worker_step_seconds_sum{TASKS}[RATE])) / sum by (phase) "
                        "(rate(disttrain_worker_step_seconds_count{TASKS}[RATE]))", "{{phase}}"),
                       w=12),
            timeseries("Steps per second", "suffix: steps/s",
                       "Steps that each worker took part in.",
                       ("sum by (task) (rate(disttrain_worker_steps_total{TASKS}[RATE]))", "{{task}}")),
            timeseries("Slow phases", "s",
                       "In 99 % of the steps the phase took at most this long.",
                       ("histogram_quantile(0.99, sum by (phase, le) "
                        "(rate(disttrain_worker_step_seconds_bucket{TASKS}[RATE])))", "{{phase}}")),
            timeseries("Network", "Bps",
                       "Bytes per second from and to each worker.",
                       ("sum by (task, direction) (rate(disttrain_transport_bytes_total{CLUSTER_TASKS}[RATE]))",
                        "{{task}} {{direction}}"))),
        row("Input",
            timeseries("Batches that are ready", "short",
                       "Batches that were read ahead. Expected: data.prefetch; 0 means that steps wait for data.",
                       ("max by (task) (disttrain_data_prefetch_depth{TASKS})", "{{task}}"),
                       decimals=0),
            timeseries("Time waiting for data", "percentunit",
                       "Share of a worker's time in which its step waited for a batch. Expected: near 0.",
                       ("sum by (task) (rate(disttrain_data_stall_seconds_total{TASKS}[RATE]))", "{{task}}"),
                       max=1),
            timeseries("Time of the input threads", "short",
                       "Threads that are busy in each stage of making batches from files. Expected: less than data.threads "
                       "in sum. 0 for data in memory.",
                       ("sum by (stage) (rate(disttrain_data_stage_seconds_total{TASKS}[RATE]))", "{{stage}}")),
            timeseries("Input's share of a step", "percentunit",
                       "The series of the alert InputBound, over five minutes, from disttrain's recording rules. The "
                       "alert fires above 30%.",
                       ("task:disttrain_worker_input:ratio5m{TASKS}", "{{task}}"),
                       max=1, thresholds=red_from(0.3)),
            timeseries("Records read", "suffix: records/s",
                       "Records that each worker read.",
                       ("sum by (task) (rate(disttrain_data_records_total{TASKS}[RATE]))", "{{task}}")),
            timeseries("Bytes read", "Bps",
                       "Bytes read from data files. 0 once the data are in memory.",
                       ("sum by (task) (rate(disttrain_data_read_bytes_total{TASKS}[RATE]))", "{{task}}")),
            timeseries("Failed loads of data", "short",
                       "Failed loads of training or evaluation data, by reason. Expected: none. The worker's log "
                       "names the file and the place.",
                       ("sum by (task, reason) (increase(disttrain_data_errors_total{TASKS}[RATE]))",
                        "{{task}} {{reason}}"),
                       bars=True)),
        row("Stragglers",
            timeseries("Time that a step costs each worker", "s",
                       "Mean of five minutes without waiting for others, from disttrain's recording rules. Expected: "
                       "equal on equal hosts.",
                       ("task:disttrain_worker_busy_seconds:per_step5m{TASKS}", "{{task}}")),
            timeseries("Against the fast quarter", "suffix: x",
                       "The same as a multiple of the fastest quarter of the job's workers. Above 1.5 the alert "
                       "StragglerWorker fires.",
                       ("task:disttrain_worker_busy_seconds:per_step5m{TASKS} / on (cluster, job) group_left () "
                        "quantile by (cluster, job) (0.25, task:disttrain_worker_busy_seconds:per_step5m{JOB})",
                        "{{task}}"),
                       thresholds=red_from(1.5)),
            timeseries("Time waiting for others", "percentunit",
                       "Share of a worker's step in phase wait. In sync the straggler is the worker that waits least.",
                       ('sum by (task) (rate(disttrain_worker_step_seconds_sum{TASKS, phase="wait"}[RATE])) / sum '
                        'by (task) (rate(disttrain_worker_step_seconds_sum{TASKS}[RATE]))', "{{task}}"),
                       max=1)),
    ])
