"""disttrain parameter servers: bytes, updates, queues, and how evenly the shards share them."""
from layout import dashboard, row
from panels import heatmap, red_from, timeseries

DASHBOARD = dashboard(
    "disttrain-ps", "disttrain parameter servers", "Bytes, updates, queues, and how evenly the shards share them.",
    tasks="label_values(disttrain_ps_parameters_bytes{JOB}, task)",
    rows=[
        row("Bytes",
            timeseries("Gradients received", "Bps",
                       "Bytes of gradients by parameter server. Expected: equal, if the shards are balanced.",
                       ("sum by (task) (rate(disttrain_ps_push_bytes_total{TASKS}[RATE]))", "{{task}}")),
            timeseries("Parameters sent", "Bps",
                       "Bytes of parameters by parameter server.",
                       ("sum by (task) (rate(disttrain_ps_pull_bytes_total{TASKS}[RATE]))", "{{task}}")),
            timeseries("Parameters held", "bytes",
                       "Bytes of parameters by parameter server, without the slots of the optimizer.",
                       ("max by (task) (disttrain_ps_parameters_bytes{TASKS})", "{{task}}")),
            timeseries("Network", "Bps",
                       "All bytes of these tasks, including headers and heartbeats.",
                       ("sum by (task, direction) (rate(disttrain_transport_bytes_total{CLUSTER_TASKS}[RATE]))",
                        "{{task}} {{direction}}"),
                       w=12),
            timeseries("Time to answer", "s",
                       "99 % of the requests were handled within this time, by kind of request.",
                       ("histogram_quantile(0.99, sum by (op, le) "
                        "(rate(disttrain_rpc_duration_seconds_bucket{CLUSTER_TASKS}[RATE])))", "{{op}}"),
                       w=12)),
        row("Updates and queues",
            timeseries("Updates per second", "suffix: updates/s",
                       "Buckets of parameters that were updated, by parameter server.",
                       ("sum by (task) (rate(disttrain_ps_apply_seconds_count{TASKS}[RATE]))", "{{task}}")),
            timeseries("Time of an update", "s",
                       "Time to update one bucket of parameters: half of the updates, and 99 % of them, took at most "
                       "this long.",
                       ("histogram_quantile(0.5, sum by (le) "
                        "(rate(disttrain_ps_apply_seconds_bucket{TASKS}[RATE])))", "median"),
                       ("histogram_quantile(0.99, sum by (le) "
                        "(rate(disttrain_ps_apply_seconds_bucket{TASKS}[RATE])))", "99%")),
            timeseries("Time spent on updates", "short",
                       "Average number of threads of each parameter server that were busy with updates. If this is its "
                       "number of shards, the server is saturated.",
                       ("sum by (task) (rate(disttrain_ps_apply_seconds_sum{TASKS}[RATE]))", "{{task}}")),
            timeseries("Queue of each shard", "short",
                       "Answers that workers wait for. A queue that is always long slows the workers down.",
                       ("max by (task, shard) (disttrain_ps_queue_depth{TASKS})", "{{task}} shard {{shard}}"),
                       w=12),
            timeseries("Queue of each shard, mean of five minutes", "short",
                       "The series of the alert HotShard, from disttrain's recording rules. The alert fires above 1 "
                       "and above 1.5 times the quickest quarter of the job's shards.",
                       ("shard:disttrain_ps_queue_depth:avg5m{TASKS}", "{{task}} shard {{shard}}"),
                       w=12, thresholds=red_from(1))),
        row("Balance",
            timeseries("Gradients received by each shard", "Bps",
                       "Expected: equal. `disttrain plan` shows the size of each shard.",
                       ("sum by (task, shard) (rate(disttrain_ps_push_bytes_total{TASKS}[RATE]))",
                        "{{task}} shard {{shard}}")),
            timeseries("Fullest shard against the mean", "suffix: x",
                       "Bytes that the busiest shard receives and sends, as a multiple of the mean. Expected: near 1. "
                       "A value of 2 means that it has twice its share.",
                       ("max (sum by (task, shard) (rate(disttrain_ps_push_bytes_total{JOB}[RATE]) + "
                        "rate(disttrain_ps_pull_bytes_total{JOB}[RATE]))) / avg (sum by (task, shard) "
                        "(rate(disttrain_ps_push_bytes_total{JOB}[RATE]) + "
                        "rate(disttrain_ps_pull_bytes_total{JOB}[RATE])))", "fullest"),
                       thresholds=red_from(2)),
            timeseries("Versions that shards are behind", "short",
                       "How many updates a shard is behind the furthest shard. Expected: a few in async, 0 or 1 in "
                       "sync.",
                       ("scalar(max (disttrain_ps_shard_version{JOB})) - max by (task, shard) "
                        "(disttrain_ps_shard_version{TASKS})", "{{task}} shard {{shard}}"))),
        row("Staleness",
            heatmap("Staleness of gradients",
                    "Number of gradients by staleness: the steps between the parameters that a gradient was computed "
                    "from and its use.",
                    "sum by (le) (increase(disttrain_gradient_staleness_steps_bucket{TASKS}[RATE]))"),
            timeseries("Mean staleness", "suffix: steps",
                       "Expected: about the number of workers minus one in async, 0 in sync.",
                       ("sum by (task) (rate(disttrain_gradient_staleness_steps_sum{TASKS}[RATE])) / sum by (task) "
                        "(rate(disttrain_gradient_staleness_steps_count{TASKS}[RATE]))", "{{task}}"),
                       w=6),
            timeseries("Gradients that came too late", "suffix: gradients/s",
                       "Sync with train.aggregate: gradients that came after their step was made. 0 in other modes.",
                       ("sum by (task) (rate(disttrain_sync_dropped_gradients_total{TASKS}[RATE]))", "{{task}}"),
                       w=6)),
    ])
