#include "tools/disttrain/command_line.h"

#include <charconv>
#include <cstdint>
#include <limits>
#include <system_error>

#include "common/bounds.h"
#include "common/config/cluster_config.h"
#include "common/config/job_config.h"
#include "common/daemon/usage_error.h"
#include "common/printable.h"
#include "tools/disttrain/bench/sizes.h"
#include "tools/disttrain/scale/link_options.h"
#include "tools/disttrain/verbs.h"

namespace disttrain::cli {

namespace {

constexpr char kClusterHelp[] =
    "cluster file; default: $DISTTRAIN_CLUSTER, else the cluster of a running `up`, else /etc/disttrain/cluster.toml";
constexpr char kJobHelp[] = "number or name of a job; default: the job that runs, else the one that ran last";
constexpr char kRunningJobHelp[] = "number or name of a job; default: the job that runs";
constexpr char kChiefHelp[] = "address of the chief, HOST:PORT; used instead of the cluster file";
constexpr char kDeviceHelp[] = "cpu, or pjrt:PLUGIN for a program that was exported from JAX";
constexpr char kNoRestartHelp[] = "don't restart a daemon that ends; if the job needs that daemon, end with an error";
constexpr char kSetHelp[] = "override a key of the job file, such as train.batch_size=100; may be repeated";

// How help and manual pages show the values of options. bash's completion chooses candidates by these names.
constexpr char kTomlFile[] = "FILE.toml";
constexpr char kFile[] = "FILE";
constexpr char kFolder[] = "FOLDER";
constexpr char kJobName[] = "NAME";
constexpr char kTask[] = "TASK";
constexpr char kHostPort[] = "HOST:PORT";
constexpr char kCount[] = "N";
constexpr char kTime[] = "TIME";
constexpr char kSize[] = "SIZE";
constexpr char kKeyValue[] = "SECTION.KEY=VALUE";

constexpr std::uint32_t kMostScaleSteps = 100'000;

using Run = std::function<int()>;

// This function checks the number itself, because CLI11 would report only "Could not convert: --ps = x".
CLI::Option* takes_count(CLI::Option* option, std::uint32_t least, std::uint32_t most) {
  return option->type_name(kCount)->check([least, most](const std::string& text) -> std::string {
    std::uint32_t value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem == std::errc() && end == text.data() + text.size() && value >= least && value <= most) return "";
    return "'" + text + "' isn't a number from " + std::to_string(least) + " to " + std::to_string(most);
  });
}

CLI::Option* takes_tasks(CLI::Option* option) {
  return takes_count(option, 1, kMaxMembers);
}

CLI::Option* takes_job(CLI::Option* option) {
  return option->type_name(kJobName)->check([](const std::string& text) -> std::string {
    if (text.ends_with(".toml"))
      return "'" + printable(cut_text(text, kMaxJobNameBytes)) +
             "' is a file; expected the name or number of a job (write a cluster file after --cluster)";
    if (text.size() <= kMaxJobNameBytes && is_printable(text)) return "";
    return "there is no job '" + printable(cut_text(text, kMaxJobNameBytes)) + "': a job's name has at most " +
           std::to_string(kMaxJobNameBytes) + " characters, each a-z, 0-9 or \"-\"";
  });
}

void add_sets(CLI::App* verb, std::vector<std::string>& sets) {
  verb->add_option("--set", sets, kSetHelp)->type_name(kKeyValue)->allow_extra_args(false);
}

void add_check(CLI::App& app, CheckOptions& options, Run& run) {
  CLI::App* verb = app.add_subcommand("check", "report every error in cluster and job files");
  verb->add_option("FILE", options.files, "cluster or job files")->type_name(kTomlFile)->required();
  add_sets(verb, options.sets);
  verb->callback([&] { run = [&] { return check(options); }; });
}

void add_output(CLI::App* verb, std::string& output) {
  verb->add_option("--output", output, "whose output to show on stderr, if the job has a trainer")
      ->check(CLI::IsMember({"rank0", "all", "none"}))
      ->capture_default_str();
}

void add_plan(CLI::App& app, PlanOptions& options, Run& run) {
  CLI::App* verb = app.add_subcommand("plan", "show a job's placement, memory and traffic without starting anything");
  verb->add_option("JOB", options.job, "job file")->type_name(kTomlFile)->required();
  verb->add_option("--cluster", options.cluster, kClusterHelp)->type_name(kTomlFile);
  takes_tasks(verb->add_option("--ps", options.ps, "number of ps, without a cluster file (default 1)"));
  takes_tasks(verb->add_option("--workers", options.workers, "number of workers, without a cluster file (default 2)"));
  CLI::Option* bandwidth = add_bandwidth(*verb, options.bandwidth);
  add_latency(*verb, options.latency)->capture_default_str()->needs(bandwidth);
  add_compute(*verb, options.compute)->needs(bandwidth);
  add_sets(verb, options.sets);
  verb->add_flag("--json", options.json, "one JSON object");
  verb->callback([&] { run = [&] { return plan(options); }; });
}

void add_up(CLI::App& app, UpOptions& options, Run& run) {
  CLI::App* verb = app.add_subcommand("up", "start a cluster on this host, train one job, stop the cluster");
  verb->add_option("CLUSTER,--cluster", options.cluster,
                   "cluster file; `up` starts the daemons whose addresses are on this host")
      ->type_name(kTomlFile);
  verb->add_option("--job", options.job, "job file; required")->type_name(kTomlFile);
  takes_tasks(verb->add_option("--ps", options.ps, "number of ps, without a cluster file (default 1)"));
  takes_tasks(verb->add_option("--workers", options.workers, "number of workers, without a cluster file (default 2)"));
  takes_count(
      verb->add_option("--evaluators", options.evaluators, "number of evaluators, without a cluster file (default 0)"),
      0, kMaxEvaluators);
  add_sets(verb, options.sets);
  add_output(verb, options.output);
  verb->add_flag("--no-restart", options.no_restart, kNoRestartHelp);
  verb->add_flag("--json", options.json, "the last line of stdout is one JSON object");
  verb->callback([&] { run = [&] { return up(options); }; });
}

void add_submit(CLI::App& app, SubmitOptions& options, Run& run) {
  CLI::App* verb = app.add_subcommand("submit", "submit a job to a running cluster and watch it");
  verb->add_option("JOB", options.job, "job file")->type_name(kTomlFile)->required();
  verb->add_option("--cluster", options.cluster, kClusterHelp)->type_name(kTomlFile);
  add_sets(verb, options.sets);
  add_output(verb, options.output);
  verb->add_flag("--detach", options.detach, "print the job's number and exit");
  verb->add_flag("--json", options.json, "the last line of stdout is one JSON object");
  verb->callback([&] { run = [&] { return submit(options); }; });
}

void add_bench_scale(CLI::App& bench, ScaleOptions& options, Run& run) {
  CLI::App* verb =
      bench.add_subcommand("scale", "simulate a job on a cluster of any size, and show its step time and its bounds");
  CLI::Option* job = verb->add_option("--job", options.job, "job file")->type_name(kTomlFile);
  verb->add_option("--bytes", options.bytes, "size of the parameters, such as 80MB (the default); used without --job")
      ->transform(CLI::AsSizeValue(true))
      ->type_name(kSize)
      ->excludes(job);
  takes_count(verb->add_option("--workers", options.workers, "number of workers"), 1, kMaxMembers)
      ->capture_default_str();
  takes_count(verb->add_option("--ps", options.ps, "number of ps"), 1, kMaxMembers)->capture_default_str();
  takes_count(verb->add_option("--threads", options.threads, "number of shards that each ps offers"), 1,
              kMaxOfferedShards)
      ->capture_default_str();
  takes_count(verb->add_option("--shards", options.shards,
                               "number of shards, 0 for auto; default: job.shards of the job file, else auto"),
              0, kMaxShards);
  verb->add_option("--mode", options.mode, "how workers wait for each other; default: that of the job file, else sync")
      ->check(CLI::IsMember({"sync", "async", "ssp"}));
  add_bandwidth(*verb, options.bandwidth)->capture_default_str();
  add_latency(*verb, options.latency)->capture_default_str();
  add_compute(*verb, options.compute)->capture_default_str();
  takes_count(verb->add_option("--steps", options.steps, "number of steps to measure, after one step of warm-up"), 1,
              kMostScaleSteps)
      ->capture_default_str();
  takes_count(verb->add_option("--records", options.records, "number of training records, on which the leases depend"),
              1, std::numeric_limits<std::uint32_t>::max())
      ->capture_default_str();
  add_sets(verb, options.sets);
  verb->add_flag("--json", options.json, "one JSON object");
  verb->callback([&] { run = [&] { return bench_scale(options); }; });
}

constexpr char kRoundsHelp[] =
    "number of rounds; the result is the median of the rounds, with the smallest and the largest of them";

CLI::Option* takes_sizes(CLI::Option* option) {
  return option->type_name("SIZES")->capture_default_str()->check([](const std::string& text) -> std::string {
    const auto sizes = parse_sizes(text);
    return sizes ? "" : sizes.error().message;
  });
}

void add_rounds(CLI::App* verb, std::uint32_t& rounds, bool& json) {
  takes_count(verb->add_option("--rounds", rounds, kRoundsHelp), 1, 10'000)->capture_default_str();
  verb->add_flag("--json", json, "one JSON object");
}

void add_bench_ps(CLI::App* family, BenchPsOptions& options, Run& run) {
  CLI::App* verb = family->add_subcommand(
      "ps", "measure how fast workers push gradients to ps processes on this host, and pull parameters");
  verb->add_option("--transport", options.transport, "transport to measure, as transport.kind in a cluster file")
      ->type_name("KIND")
      ->capture_default_str();
  verb->add_option("--address", options.address,
                   "IP address of this host at which the ps listen; RDMA needs that of a device")
      ->type_name("IP")
      ->capture_default_str();
  takes_sizes(verb->add_option("--sizes", options.sizes, "bytes of gradients that a worker pushes in a step"));
  takes_tasks(verb->add_option("--ps", options.ps, "number of ps processes"))->capture_default_str();
  takes_tasks(verb->add_option("--workers", options.workers, "number of workers, which are threads of this process"))
      ->capture_default_str();
  verb->add_option("--cores", options.cores,
                   "apart: each ps and each worker stays on a core of its own, if there are enough cores; free: the "
                   "kernel chooses, and often changes, their cores")
      ->check(CLI::IsMember({"apart", "free"}))
      ->capture_default_str();
  add_rounds(verb, options.rounds, options.json);
  verb->callback([&] { run = [&] { return bench_ps(options); }; });
}

void add_bench_update(CLI::App* family, BenchUpdateOptions& options, Run& run) {
  CLI::App* verb = family->add_subcommand(
      "update", "measure how fast one thread of a ps applies gradients, for each update rule, beside memcpy");
  takes_sizes(verb->add_option("--sizes", options.sizes,
                               "bytes of gradients of an update; a small size stays in the core's cache"));
  add_rounds(verb, options.rounds, options.json);
  verb->callback([&] { run = [&] { return bench_update(options); }; });
}

void add_bench_step(CLI::App* family, BenchStepOptions& options, Run& run) {
  CLI::App* verb = family->add_subcommand(
      "step", "measure how long a worker's engine computes a step of a job, without messages and updates");
  verb->add_option("JOB", options.job, "job file")->type_name(kTomlFile)->required();
  verb->add_flag("--random", options.random, "random records instead of the job's data; only for builtin models");
  verb->add_option("--device", options.device, kDeviceHelp)->type_name("DEVICE")->capture_default_str();
  takes_count(
      verb->add_option("--threads", options.threads, "number of compute threads; with 1, everything runs on one core"),
      1, 1024)
      ->capture_default_str();
  add_sets(verb, options.sets);
  add_rounds(verb, options.rounds, options.json);
  verb->callback([&] { run = [&] { return bench_step(options); }; });
}

// `bench JOB.toml` has no verb of its own. So JOB isn't required when there is a verb below `bench`.
void add_bench(CLI::App& app, CommandLine::BenchVerbs& verbs, Run& run) {
  CLI::App* verb = app.add_subcommand("bench", "measure a job's steps per second, or a part of the suite by itself");
  verb->require_subcommand(0, 1);
  UpOptions& options = verbs.job;
  verb->add_option("JOB", options.job, "job file, to measure its steps per second and where their time goes")
      ->type_name(kTomlFile);
  verb->add_option("--cluster", options.cluster,
                   "file of a running cluster to use; default: start a new cluster, as `up` does")
      ->type_name(kTomlFile);
  takes_tasks(verb->add_option("--ps", options.ps, "number of ps, without a cluster file (default 1)"));
  takes_tasks(verb->add_option("--workers", options.workers, "number of workers, without a cluster file (default 2)"));
  takes_count(
      verb->add_option("--evaluators", options.evaluators, "number of evaluators, without a cluster file (default 0)"),
      0, kMaxEvaluators);
  takes_count(verb->add_option("--warmup", options.warmup, "global steps to make before the measurement begins"), 0,
              std::numeric_limits<std::uint32_t>::max())
      ->capture_default_str();
  add_sets(verb, options.sets);
  verb->add_flag("--no-restart", options.no_restart, kNoRestartHelp);
  verb->add_flag("--json", options.json, "the last line of stdout is one JSON object");
  add_bench_ps(verb, verbs.ps, run);
  add_bench_update(verb, verbs.update, run);
  add_bench_step(verb, verbs.step, run);
  add_bench_scale(*verb, verbs.scale, run);
  // CLI11 calls this after the callback of a verb below `bench`.
  verb->callback([verb, &options, &run] {
    if (verb->get_subcommands().empty()) {
      run = [&options] { return bench(options); };
      return;
    }
    for (const CLI::Option* option : verb->get_options())
      if (option->count() > 0)
        throw CLI::ValidationError(option->get_name(), "stands before the verb; write it after `bench " +
                                                           verb->get_subcommands().front()->get_name() + "`");
  });
}

void add_status(CLI::App& app, StatusOptions& options, Run& run) {
  CLI::App* verb = app.add_subcommand("status", "show a job and its tasks");
  takes_job(verb->add_option("JOB", options.job, kJobHelp));
  CLI::Option* cluster = verb->add_option("--cluster", options.cluster, kClusterHelp)->type_name(kTomlFile);
  verb->add_option("--chief", options.chief, kChiefHelp)->type_name(kHostPort)->excludes(cluster);
  verb->add_flag("-w,--watch", options.watch, "refresh until the job ends");
  verb->add_flag("--all", options.all, "list all jobs");
  verb->add_flag("--json", options.json, "one JSON object");
  verb->callback([&] { run = [&] { return status(options); }; });
}

void add_top(CLI::App& app, TopOptions& options, Run& run) {
  CLI::App* verb = app.add_subcommand("top", "show a job and its tasks live, with curves; Ctrl-C ends the display");
  takes_job(verb->add_option("JOB", options.job, kJobHelp));
  CLI::Option* cluster = verb->add_option("--cluster", options.cluster, kClusterHelp)->type_name(kTomlFile);
  verb->add_option("--chief", options.chief, kChiefHelp)->type_name(kHostPort)->excludes(cluster);
  verb->callback([&] { run = [&] { return top(options); }; });
}

void add_logs(CLI::App& app, LogsOptions& options, Run& run) {
  CLI::App* verb = app.add_subcommand("logs", "show log lines of all tasks, merged by time");
  takes_job(
      verb->add_option("JOB", options.job, "number or name of a job, to show only lines from the time of that job"));
  verb->add_option("--cluster", options.cluster, kClusterHelp)->type_name(kTomlFile);
  verb->add_flag("-f,--follow", options.follow, "keep printing new lines; Ctrl-C leaves the job running");
  verb->add_option("--since", options.since,
                   "show only lines newer than this: an age such as 10m, or a time in UTC such as 2026-11-20T23:45:00")
      ->type_name(kTime);
  verb->add_option("--task", options.tasks, "show only lines of this task, such as ps/1; may be repeated")
      ->type_name(kTask)
      ->allow_extra_args(false);
  verb->add_option("--level", options.level, "show only lines of this level or above")
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}))
      ->capture_default_str();
  verb->callback([&] { run = [&] { return logs(options); }; });
}

void add_events(CLI::App& app, EventsOptions& options, Run& run) {
  CLI::App* verb = app.add_subcommand("events", "list what happened to a job and its tasks, oldest first");
  CLI::Option* job = takes_job(verb->add_option("JOB", options.job, kJobHelp));
  CLI::Option* cluster = verb->add_option("--cluster", options.cluster, kClusterHelp)->type_name(kTomlFile);
  verb->add_option("--chief", options.chief, kChiefHelp)->type_name(kHostPort)->excludes(cluster);
  verb->add_flag("--all", options.all, "events of all jobs, and events that belong to no job")->excludes(job);
  verb->add_flag("-f,--follow", options.follow,
                 "keep printing new events until the job ends; Ctrl-C leaves the job running");
  verb->add_flag("--json", options.json, "print one JSON list, or with -f one JSON object per event");
  verb->callback([&] { run = [&] { return events(options); }; });
}

void add_why(CLI::App& app, WhyOptions& options, Run& run) {
  CLI::App* verb =
      app.add_subcommand("why", "say what slows a job's steps: a worker, its input, a shard or the network");
  takes_job(verb->add_option("JOB", options.job, kJobHelp));
  CLI::Option* cluster = verb->add_option("--cluster", options.cluster, kClusterHelp)->type_name(kTomlFile);
  verb->add_option("--chief", options.chief, kChiefHelp)->type_name(kHostPort)->excludes(cluster);
  verb->add_flag("--json", options.json, "one JSON object");
  verb->callback([&] { run = [&] { return why(options); }; });
}

void add_stop(CLI::App& app, StopOptions& stop_options, StopOptions& kill_options, Run& run) {
  kill_options.kill = true;
  const auto add = [&app, &run](const char* name, const char* help, StopOptions& options) {
    CLI::App* verb = app.add_subcommand(name, help);
    takes_job(verb->add_option("JOB", options.job, kRunningJobHelp));
    verb->add_option("--cluster", options.cluster, kClusterHelp)->type_name(kTomlFile);
    verb->callback([&options, &run] { run = [&options] { return stop(options); }; });
  };
  add("stop", "end a job cleanly: each worker finishes its step, and the job takes its last checkpoint", stop_options);
  add("kill", "end a job at once, without its last checkpoint", kill_options);
}

void add_resubmit(CLI::App& app, ResubmitOptions& options, Run& run) {
  CLI::App* verb = app.add_subcommand(
      "resubmit",
      "submit a job again that has failed or was stopped: it goes on from its newest checkpoint, if it has one");
  takes_job(verb->add_option("JOB", options.job, kJobHelp));
  CLI::Option* cluster = verb->add_option("--cluster", options.cluster, kClusterHelp)->type_name(kTomlFile);
  verb->add_option("--chief", options.chief, kChiefHelp)->type_name(kHostPort)->excludes(cluster);
  verb->callback([&] { run = [&] { return resubmit(options); }; });
}

constexpr char kCheckpointHelp[] = "folder of a checkpoint; the folder of a job stands for its newest checkpoint";

void add_checkpoint(CLI::App& app, CommandLine::CheckpointVerbs& options, Run& run) {
  CLI::App* family = app.add_subcommand("checkpoint", "take, list, inspect, verify, compare and export checkpoints");
  family->require_subcommand(1);

  CLI::App* save = family->add_subcommand("save", "take a checkpoint of a running job now, and wait for it");
  takes_job(save->add_option("JOB", options.save.job, kRunningJobHelp));
  CLI::Option* cluster = save->add_option("--cluster", options.save.cluster, kClusterHelp)->type_name(kTomlFile);
  save->add_option("--chief", options.save.chief, kChiefHelp)->type_name(kHostPort)->excludes(cluster);
  save->add_flag("--json", options.save.json, "one JSON object");
  save->callback([&] { run = [&] { return checkpoint_save(options.save); }; });

  CLI::App* list = family->add_subcommand("list", "list a job's checkpoints, newest first");
  list->add_option("FOLDER", options.list.path,
                   "folder with a job's checkpoints, or the directory with the folders of all jobs")
      ->type_name(kFolder)
      ->required();
  list->add_flag("--json", options.list.json, "one JSON object");
  list->callback([&] { run = [&] { return checkpoint_list(options.list); }; });

  CLI::App* inspect = family->add_subcommand("inspect", "show what a checkpoint holds");
  inspect->add_option("PATH", options.inspect.path, kCheckpointHelp)->type_name(kFolder)->required();
  inspect->add_flag("--json", options.inspect.json, "one JSON object");
  inspect->callback([&] { run = [&] { return checkpoint_inspect(options.inspect); }; });

  CLI::App* verify = family->add_subcommand("verify", "read every byte and compare the checksums");
  verify
      ->add_option("PATH", options.verify.path,
                   "folder of a checkpoint or of a job, or the directory with the folders of all jobs")
      ->type_name(kFolder)
      ->required();
  verify->add_flag("--json", options.verify.json, "one JSON object");
  verify->callback([&] { run = [&] { return checkpoint_verify(options.verify); }; });

  CLI::App* diff = family->add_subcommand("diff", "compare the parameters of two checkpoints; exits 1 if they differ");
  diff->add_option("A", options.diff.a, "folder of a checkpoint or of a job, or safetensors files")
      ->type_name(kFile)
      ->required();
  diff->add_option("B", options.diff.b, "what to compare A with")->type_name(kFile)->required();
  diff->add_flag("--slots", options.diff.slots, "compare the optimizer's slots too; both must be checkpoints");
  diff->add_flag("--json", options.diff.json, "one JSON object");
  diff->callback([&] { run = [&] { return checkpoint_diff(options.diff); }; });

  CLI::App* exported = family->add_subcommand("export", "write the parameters as plain safetensors");
  exported->add_option("PATH", options.exported.path, kCheckpointHelp)->type_name(kFolder)->required();
  exported->add_option("OUT", options.exported.out, "file NAME.safetensors, or with --max-shard-size a folder")
      ->type_name(kFile)
      ->required();
  exported
      ->add_option("--dtype", options.exported.dtype,
                   "format of the floating-point values; by default that of the model")
      ->check(CLI::IsMember({"f32", "f16", "bf16"}));
  exported
      ->add_option("--max-shard-size", options.exported.max_shard_size,
                   "write several files of at most this size, such as 5GB")
      ->transform(CLI::AsSizeValue(true))
      ->type_name(kSize);
  exported->add_flag("--average", options.exported.average,
                     "write the moving averages of the parameters (evaluate.average)");
  exported->add_flag("--force", options.exported.force, "replace OUT if it exists");
  exported->callback([&] { run = [&] { return checkpoint_export(options.exported); }; });
}

void add_predict(CLI::App& app, PredictOptions& options, Run& run) {
  CLI::App* verb = app.add_subcommand("predict", "compute a checkpoint's outputs for a data set, without a cluster");
  verb->add_option("PATH", options.checkpoint, kCheckpointHelp)->type_name(kFolder)->required();
  verb->add_option("OUT", options.out, "file NAME.npy, NAME.csv or NAME.parquet, with one row for each record")
      ->type_name(kFile)
      ->required();
  verb->add_option("--data", options.data,
                   "folder of the data; default: the one that the job evaluates (evaluate.path)")
      ->type_name(kFolder);
  verb->add_option("--files", options.files,
                   "data files in that folder, with all their records; default: evaluate.files")
      ->type_name("PATTERN");
  verb->add_option(
          "--labels", options.labels,
          "label files in that folder (idx, npy), or the name of the array of labels (npz); no other format uses it; "
          "default: evaluate.labels")
      ->type_name("PATTERN");
  verb->add_option("--device", options.device, kDeviceHelp)->type_name("DEVICE")->capture_default_str();
  takes_count(verb->add_option("--threads", options.threads, "number of compute threads; default: one per core"), 1,
              1024);
  add_sets(verb, options.sets);
  verb->callback([&] { run = [&] { return predict(options); }; });
}

void add_doctor(CLI::App& app, DoctorOptions& options, Run& run) {
  CLI::App* verb =
      app.add_subcommand("doctor", "check whether this host can run its tasks: limits, network, clock, disks");
  verb->add_option("CLUSTER,--cluster", options.cluster, kClusterHelp)->type_name(kTomlFile);
  verb->add_option("--job", options.job, "job file, to also check the folders that it names on this host")
      ->type_name(kTomlFile);
  verb->add_flag("--json", options.json, "one JSON object");
  verb->callback([&] { run = [&] { return doctor(options); }; });
}

}  // namespace

CommandLine::CommandLine() {
  app.require_subcommand(1);
  app.set_version_flag("--version", "disttrain 0.1.0");
  add_up(app, up_options, run);
  add_submit(app, submit_options, run);
  add_status(app, status_options, run);
  add_top(app, top_options, run);
  add_logs(app, logs_options, run);
  add_events(app, events_options, run);
  add_why(app, why_options, run);
  add_stop(app, stop_options, kill_options, run);
  add_resubmit(app, resubmit_options, run);
  add_plan(app, plan_options, run);
  add_check(app, check_options, run);
  add_bench(app, bench_options, run);
  add_checkpoint(app, checkpoint_options, run);
  add_predict(app, predict_options, run);
  add_doctor(app, doctor_options, run);
  app.add_subcommand("version", "print the versions of disttrain and of its protocol")->callback([this] {
    run = [] { return version(); };
  });
  daemon::refuse_empty_values(app);
}

}  // namespace disttrain::cli
