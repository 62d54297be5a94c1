// A job of `up` says how many workers the chief must wait for: all that `up` starts. Without this number the chief
// begins soon after the first worker has joined, because it can't know whether anybody will start another one. When 64
// workers loaded libtorch on few cores, the first of them trained alone, and in sync the result depended on which
// worker was first. job.min_workers would make the chief wait too, but it would also pause the job later, whenever a
// worker is lost.
#include "tools/disttrain/up/own_cluster.h"

#include <algorithm>
#include <asio/io_context.hpp>
#include <iostream>

#include "common/config/reader/reader.h"
#include "common/daemon/clock.h"
#include "common/daemon/startup.h"
#include "common/timeouts.h"
#include "tools/disttrain/follow/follow_job.h"
#include "tools/disttrain/follow/progress.h"
#include "tools/disttrain/follow/summary.h"
#include "tools/disttrain/interrupts.h"
#include "tools/disttrain/log_tail.h"
#include "tools/disttrain/up/local_cluster.h"
#include "tools/disttrain/up/missing_tasks.h"

namespace disttrain::cli {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kLogLinesOfATask = 10;
constexpr Duration kStartDeadline = 20s;     // how long the chief may take to start and answer
constexpr Duration kOwnChiefPatience = 30s;  // how long to retry to reach a chief that is being restarted
constexpr Duration kJustNow = 10s;
constexpr TaskId kChief{Role::kChief, 0};

struct Sets {
  std::vector<std::string> cluster;
  std::vector<std::string> job;
};

// Splits the values of --set. Without a cluster file, `up` also accepts keys of cluster.toml, except those that it sets
// itself.
Result<Sets> split_sets(const UpOptions& options) {
  Sets sets;
  for (const std::string& set : options.sets) {
    if (!config::is_cluster_key(set)) {
      sets.job.push_back(set);
      continue;
    }
    const std::string section = set.substr(0, set.find('.'));
    if (!options.cluster.empty())
      return fail(ErrorCode::kUsage,
                  "--set " + set + ": this is a key of the cluster file; change it in " + options.cluster);
    if (section == "cluster" || section == "chief" || section == "ps" || section == "worker" || section == "evaluator")
      return fail(ErrorCode::kUsage, "--set " + set + ": `disttrain up` itself sets the keys of [" + section +
                                         "]; to choose them, give it a cluster file");
    sets.cluster.push_back(set);
  }
  return sets;
}

Result<LocalClusterOptions> cluster_options(const UpOptions& options, const Sets& sets, const std::string& name) {
  if (!options.cluster.empty() && (options.ps || options.workers || options.evaluators))
    return fail(ErrorCode::kUsage, "--ps, --workers and --evaluators can't be combined with a cluster file: " +
                                       options.cluster + " already lists the tasks");
  LocalClusterOptions result;
  result.cluster_file = options.cluster;
  result.ps = options.ps.value_or(1);
  result.workers = options.workers.value_or(2);
  result.evaluators = options.evaluators.value_or(0);
  result.sets = sets.cluster;
  constexpr std::size_t kLongestClusterName = 64;
  result.name = name.substr(0, kLongestClusterName);
  result.restarts = !options.no_restart;
  result.say = [](const std::string& line) { say_below_bar(line); };
  return result;
}

void say_start(const LocalCluster& cluster) {
  const ClusterConfig& config = cluster.config();
  std::cerr << "disttrain " << daemon::kVersion << ": 1 chief, " << config.ps.size() << " ps, " << config.workers.size()
            << (config.workers.size() == 1 ? " worker" : " workers");
  if (!config.evaluators.empty())
    std::cerr << ", " << config.evaluators.size() << (config.evaluators.size() == 1 ? " evaluator" : " evaluators");
  std::cerr << "; transport " << config.transport.kind << "; chief at " << config.chief.address << '\n';
}

// The chief only knows that the task was lost. This process is the parent of the task's process, so it also knows how
// that process ended. The function adds this to the root cause.
void add_how_it_ended(Json& status, const Supervisor& daemons) {
  if (!status.is_object() || !status.contains("root_cause") || !status["root_cause"].is_object()) return;
  Json& cause = status["root_cause"];
  const auto& ended = daemons.ended();
  const auto last = std::find_if(ended.rbegin(), ended.rend(), [&cause](const EndedDaemon& one) {
    return to_string(one.task) == text_of(cause, "task");
  });
  // If the daemon ended long ago and was restarted since, that end isn't the cause.
  if (last == ended.rend() || (!last->stays_down && daemon::now() - last->when > kJustNow)) return;
  cause["reason"] = text_of(cause, "reason") + "; " + described(*last);
  if (last->signal) cause["signal"] = *last->signal;
  if (list_of(cause, "log").empty()) cause["log"] = last_lines(last->log, kLogLinesOfATask);
}

// Returns the error to report when the job can't be submitted. If a daemon has ended, its own error says more than "no
// answer".
Error first_cause(const Supervisor& daemons, Error error) {
  if (daemons.ended().empty()) return error;
  const EndedDaemon* down = daemons.first_that_stays_down();
  const EndedDaemon& ended = down != nullptr ? *down : daemons.ended().back();
  std::string message = described(ended);
  for (const std::string& line : last_lines(ended.log, kLogLinesOfATask)) message += "\n  | " + line;
  return Error{error_code_of(ended), message};
}

FinishedRun conclude(Outcome outcome, const MissingTasks& missing, const Supervisor& daemons, const std::string& job) {
  FinishedRun run;
  run.status = std::move(outcome.status);
  if (const auto& blamed = missing.blamed(); blamed && outcome.error) {
    run.status = failed_status(run.status, job, to_string(blamed->task),
                               "pid " + std::to_string(blamed->pid) + " " + blamed->how, blamed->signal,
                               last_lines(blamed->log, kLogLinesOfATask));
    if (blamed->exit_code && is_sysexit(*blamed->exit_code)) run.status["code"] = *blamed->exit_code;
  } else {
    if (outcome.error && outcome.interrupted == 0) {
      // The job doesn't need any daemon that stays down. So the chief's process is there, but it doesn't answer. Maybe
      // the process was stopped (SIGSTOP).
      run.status = failed_status(run.status, job, "chief/0", outcome.error->message, std::nullopt,
                                 last_lines(daemons.log_of(kChief), kLogLinesOfATask));
    }
    add_how_it_ended(run.status, daemons);
  }
  run.exit_code = outcome.interrupted != 0 ? outcome.interrupted : exit_code_of(run.status);
  return run;
}

}  // namespace

Result<FinishedRun> run_on_own_cluster(const UpOptions& options) {
  auto sets = split_sets(options);
  if (!sets) return tl::unexpected<Error>(std::move(sets.error()));
  // Somebody watches this job, so it doesn't wait for its tasks without a limit.
  const auto job = config::read_job_file(options.job, sets->job, {"job.ps_timeout=2m", "job.workers_timeout=2m"});
  if (!job) return tl::unexpected<Error>(job.error());
  const std::string& name = job->config.job.name;
  auto local = cluster_options(options, *sets, name);
  if (!local) return tl::unexpected<Error>(std::move(local.error()));

  if (local->evaluators > 0 && job->config.checkpoint.directory.empty())
    return fail(ErrorCode::kConfig,
                "--evaluators: an evaluator needs checkpoints, but the job takes none: set checkpoint.directory");

  asio::io_context loop;
  Interrupts interrupts(loop);
  auto started = LocalCluster::start(loop, *local);
  if (!started) return tl::unexpected<Error>(std::move(started.error()));
  LocalCluster& cluster = **started;
  say_start(cluster);

  const Supervisor& daemons = cluster.daemons();

  // The client stops waiting for an answer when the function below returns true. Before the job is submitted, the
  // function returns true after Ctrl-C, or if a daemon stays down. Later it returns true after the second Ctrl-C, or if
  // the chief stays down.
  bool is_submitted = false;
  ChiefClient client(loop, [&] {
    return is_submitted ? interrupts.count() > 1 || daemons.stays_down(kChief)
                        : interrupts.count() > 0 || daemons.first_that_stays_down() != nullptr;
  });
  const auto give_up = [&](const Error& error) -> Result<FinishedRun> {
    if (interrupts.count() > 0) return FinishedRun{Json(), interrupts.exit_code(), ""};
    return tl::unexpected<Error>(first_cause(daemons, error));
  };
  const ChiefTarget target{cluster.config().chief.address, cluster.config().name, cluster.config().hash};
  if (Status connected = client.connect(target, kStartDeadline); !connected) return give_up(connected.error());
  const auto number = submit_job(client, *job, options.warmup, Namesake::kGoesOn, cluster.own_workers());
  if (!number) return give_up(number.error());
  is_submitted = true;
  if (Status tasks = cluster.start_tasks(); !tasks) return give_up(tasks.error());

  MissingTasks missing(daemons, cluster.config().ps.size());
  const auto judge = [&missing](const Json& status) { return missing.judge(status); };
  const Duration patience = options.no_restart ? Duration::zero() : kOwnChiefPatience;
  const auto end_silent_chief = [&cluster](Duration silence) { return cluster.end_silent_chief(silence); };
  Outcome outcome = follow(client, interrupts,
                           FollowedJob{target, *number, OnInterrupt::kStopJob, judge, patience, end_silent_chief,
                                       output_of(options.output, job->config)});
  FinishedRun run = conclude(std::move(outcome), missing, daemons, name);
  const bool is_failed = text_of(run.status, "state") == "failed";
  if (is_failed) {
    cluster.keep_folder();
    run.logs = cluster.folder().string();
  }
  cluster.stop(derive_timeouts(cluster.config().heartbeat.timeout).close);
  return run;
}

void print_failure(const FinishedRun& run) {
  print_root_cause(std::cerr, run.status);
  if (!run.logs.empty()) std::cerr << "all logs are kept in the run folder: " << run.logs << '\n';
}

}  // namespace disttrain::cli
