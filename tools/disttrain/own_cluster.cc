#include "tools/disttrain/own_cluster.h"

#include <asio/io_context.hpp>
#include <iostream>

#include "common/daemon/config_reader.h"
#include "common/daemon/startup.h"
#include "common/timeouts.h"
#include "tools/disttrain/interrupts.h"
#include "tools/disttrain/job_run.h"
#include "tools/disttrain/local_cluster.h"
#include "tools/disttrain/summary.h"

namespace disttrain::cli {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kShownLogLines = 10;
constexpr Duration kStartDeadline = 20s;  // until the chief answers

struct Sets {
  std::vector<std::string> cluster;
  std::vector<std::string> job;
};

// INTERFACES.md section 2: without a cluster file `up` also takes keys of cluster.toml, but for those that it makes up
// itself.
Result<Sets> split_sets(const UpOptions& options) {
  Sets sets;
  for (const std::string& set : options.sets) {
    if (!daemon::is_cluster_key(set)) {
      sets.job.push_back(set);
      continue;
    }
    const std::string section = set.substr(0, set.find('.'));
    if (!options.cluster.empty())
      return fail(ErrorCode::kUsage,
                  "--set " + set + ": this is a key of the cluster file; change it in " + options.cluster);
    if (section == "cluster" || section == "chief" || section == "ps" || section == "worker")
      return fail(ErrorCode::kUsage, "--set " + set + ": [" + section +
                                         "] is made up by disttrain itself; give a cluster file to choose it");
    sets.cluster.push_back(set);
  }
  return sets;
}

Result<LocalClusterOptions> cluster_options(const UpOptions& options, const Sets& sets, const std::string& name) {
  if (!options.cluster.empty() && (options.ps || options.workers))
    return fail(ErrorCode::kUsage, "--ps and --workers are for a cluster that is made up; " + options.cluster +
                                       " already says which tasks there are");
  LocalClusterOptions result;
  result.cluster_file = options.cluster;
  result.ps = options.ps.value_or(1);
  result.workers = options.workers.value_or(2);
  result.sets = sets.cluster;
  constexpr std::size_t kLongestClusterName = 64;
  result.name = name.substr(0, kLongestClusterName);
  constexpr std::uint32_t kMost = 1024;
  if (result.ps < 1 || result.ps > kMost)
    return fail(ErrorCode::kUsage, "--ps is " + std::to_string(result.ps) + "; expected 1 to 1024");
  if (result.workers < 1 || result.workers > kMost)
    return fail(ErrorCode::kUsage, "--workers is " + std::to_string(result.workers) + "; expected 1 to 1024");
  return result;
}

std::string described(const Child& child) {
  return to_string(child.task()) + " (pid " + std::to_string(child.pid()) + ") " + child.how_it_ended();
}

// Tells of children that have ended, and ends the watching where the chief can't: it is itself dead, or it waits for a
// task that will never come.
class Watch {
 public:
  explicit Watch(const LocalCluster& cluster) : cluster_(cluster) {}

  std::optional<Error> judge(const Json& status) {
    for (; told_ < cluster_.ended().size(); ++told_) std::cerr << '\n' << described(*cluster_.ended()[told_]) << '\n';
    for (const Child* child : cluster_.ended()) {
      const bool is_chief = child->task().role == Role::kChief;
      const std::string state = status.is_object() ? text_of(status, "state") : "";
      const bool is_awaited = state.empty() || state == "queued" || state == "starting";
      if (is_chief || is_awaited) return blame(*child, is_chief);
    }
    return std::nullopt;
  }

  const Child* blamed() const { return blamed_; }

 private:
  // The chief hears of a task's death too and may end the job by itself: it gets a moment to say so.
  std::optional<Error> blame(const Child& child, bool is_chief) {
    const auto time = std::chrono::steady_clock::now();
    if (!first_seen_) first_seen_ = time;
    if (!is_chief && time - *first_seen_ < 1s) return std::nullopt;
    blamed_ = &child;
    return Error{static_cast<ErrorCode>(child.exit_code().value_or(static_cast<int>(ErrorCode::kFailed))),
                 described(child)};
  }

  const LocalCluster& cluster_;
  std::size_t told_ = 0;
  std::optional<std::chrono::steady_clock::time_point> first_seen_;
  const Child* blamed_ = nullptr;
};

void say_start(const LocalCluster& cluster) {
  const ClusterConfig& config = cluster.config();
  std::cerr << "disttrain " << daemon::kVersion << ": 1 chief, " << config.ps.size() << " ps, " << config.workers.size()
            << (config.workers.size() == 1 ? " worker" : " workers") << "; transport tcp"
            << (config.transport.kind == "auto" ? " (auto: this version has no other)" : "") << "; chief at "
            << config.chief.address << '\n';
}

// The chief says that a task was lost; its parent knows how it ended.
void add_how_it_ended(Json& status, const LocalCluster& cluster) {
  if (!status.is_object() || !status.contains("root_cause") || !status["root_cause"].is_object()) return;
  Json& cause = status["root_cause"];
  for (const Child* child : cluster.ended()) {
    if (to_string(child->task()) != text_of(cause, "task")) continue;
    cause["reason"] = text_of(cause, "reason") + "; " + described(*child);
    if (list_of(cause, "log").empty()) cause["log"] = last_lines(child->log(), kShownLogLines);
  }
}

// Before a job exists the error of a daemon that has ended says more than "no answer".
Error first_cause(const LocalCluster& cluster, Error error) {
  if (cluster.ended().empty()) return error;
  const Child& child = *cluster.ended().front();
  std::string message = described(child);
  for (const std::string& line : last_lines(child.log(), kShownLogLines)) message += "\n  | " + line;
  return Error{static_cast<ErrorCode>(child.exit_code().value_or(static_cast<int>(ErrorCode::kFailed))), message};
}

FinishedRun conclude(Outcome outcome, const Watch& watch, const LocalCluster& cluster, const std::string& job) {
  FinishedRun run;
  run.status = std::move(outcome.status);
  if (const Child* child = watch.blamed(); child != nullptr && outcome.error) {
    run.status = failed_status(run.status, job, to_string(child->task()),
                               "pid " + std::to_string(child->pid()) + " " + child->how_it_ended(),
                               last_lines(child->log(), kShownLogLines));
    if (const auto code = child->exit_code()) run.status["code"] = *code;
  } else {
    if (outcome.error && outcome.interrupted == 0) {
      // No child has ended, so the chief is there and doesn't answer: it is stopped, or its host is.
      const Child* chief = cluster.find(TaskId{Role::kChief, 0});
      run.status =
          failed_status(run.status, job, "chief/0", outcome.error->message,
                        chief != nullptr ? last_lines(chief->log(), kShownLogLines) : std::vector<std::string>{});
    }
    add_how_it_ended(run.status, cluster);
  }
  run.exit_code = outcome.interrupted != 0 ? outcome.interrupted : exit_code_of(run.status);
  return run;
}

}  // namespace

Result<FinishedRun> run_on_own_cluster(const UpOptions& options) {
  auto sets = split_sets(options);
  if (!sets) return tl::unexpected<Error>(std::move(sets.error()));
  const auto job = daemon::read_job_file(options.job, sets->job);
  if (!job) return tl::unexpected<Error>(job.error());
  const std::string& name = job->config.job.name;
  auto local = cluster_options(options, *sets, name);
  if (!local) return tl::unexpected<Error>(std::move(local.error()));

  asio::io_context loop;
  Interrupts interrupts(loop);
  auto started = LocalCluster::start(loop, *local);
  if (!started) return tl::unexpected<Error>(std::move(started.error()));
  LocalCluster& cluster = **started;
  say_start(cluster);

  // A lost chief is noticed by the connection; a child that ends before there is one, or a second Ctrl-C, by this.
  bool is_submitted = false;
  ChiefClient client(
      loop, [&] { return is_submitted ? interrupts.count() > 1 : interrupts.count() > 0 || !cluster.ended().empty(); });
  const auto give_up = [&](const Error& error) -> Result<FinishedRun> {
    if (interrupts.count() > 0) return FinishedRun{Json(), interrupts.exit_code()};
    return tl::unexpected<Error>(first_cause(cluster, error));
  };
  const ChiefTarget target{cluster.config().chief.address, cluster.config().name, cluster.config().hash};
  if (Status connected = client.connect(target, kStartDeadline); !connected) return give_up(connected.error());
  const auto number = submit_job(client, *job, options.warmup);
  if (!number) return give_up(number.error());
  is_submitted = true;

  Watch watch(cluster);
  const auto judge = [&watch](const Json& status) { return watch.judge(status); };
  Outcome outcome = follow(client, interrupts, JobRun{target, *number, OnInterrupt::kStopJob, judge, {}});
  FinishedRun run = conclude(std::move(outcome), watch, cluster, name);
  const bool is_failed = text_of(run.status, "state") == "failed";
  if (is_failed) cluster.keep_folder();
  cluster.stop(derive_timeouts(cluster.config().heartbeat.timeout).close);
  if (is_failed) {
    print_root_cause(std::cerr, run.status);
    std::cerr << "the run folder with all logs is kept: " << cluster.folder().string() << '\n';
  }
  return run;
}

}  // namespace disttrain::cli
