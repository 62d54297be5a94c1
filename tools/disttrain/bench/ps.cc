// disttrain bench ps: measures how fast workers push gradients to ps processes and pull parameters from them. The ps
// processes are real ones. The workers are threads of this process, which compute nothing (bench_worker.h).
#include <sched.h>
#include <unistd.h>

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <cmath>
#include <iostream>
#include <memory>
#include <utility>

#include "common/daemon/random.h"
#include "common/daemon/startup.h"
#include "tools/disttrain/bench/bench_worker.h"
#include "tools/disttrain/bench/ps_cluster.h"
#include "tools/disttrain/bench/sizes.h"
#include "tools/disttrain/bench/spread.h"
#include "tools/disttrain/bench/thread_usage.h"
#include "tools/disttrain/interrupts.h"
#include "tools/disttrain/table.h"
#include "tools/disttrain/units.h"
#include "tools/disttrain/verbs.h"
#include "transport/factory/factory.h"

namespace disttrain::cli {

namespace {

// A round makes as many steps as fit into this time, but at least kLeastSteps.
constexpr double kRoundSeconds = 0.1;
constexpr std::uint64_t kLeastSteps = 3;
constexpr std::uint64_t kMostSteps = 20'000;

struct Kind {
  Exchanged what;
  const char* key;   // in the JSON
  const char* name;  // in the table
};
constexpr Kind kKinds[] = {{Exchanged::kPush, "push", "push"},
                           {Exchanged::kPull, "pull", "pull"},
                           {Exchanged::kPushPull, "push_pull", "push and pull"}};

// The results of all rounds of one kind of exchange. Each list has one number per round.
struct Measured {
  std::vector<double> us;             // time of a step
  std::vector<double> gb_per_second;  // of all workers together; with push and pull: in each direction
  std::vector<double> ps_cpu_us;      // the numbers below are of all ps or all workers together, per step of a worker
  std::vector<double> ps_wakeups;
  std::vector<double> worker_cpu_us;
  std::vector<double> worker_wakeups;
};

struct MeasuredSize {
  std::uint64_t bytes = 0;
  std::vector<Measured> kinds;  // in the order of kKinds
  std::uint64_t ps_peak_bytes = 0;
  std::uint64_t worker_peak_bytes = 0;
};

// One variable per ps, so that each ps gets an equal part of the bytes.
ModelSpec model_of(std::uint64_t bytes, std::uint32_t ps) {
  ModelSpec model;
  for (std::uint32_t i = 0; i < ps; ++i) {
    const std::uint64_t words = bytes / sizeof(float) * (i + 1) / ps - bytes / sizeof(float) * i / ps;
    VariableSpec variable;
    variable.name = "part" + std::to_string(i);
    variable.shape = {words};
    model.variables.push_back(std::move(variable));
  }
  return model;
}

TrainSection training() {
  TrainSection train;
  train.batch_size = 1;
  train.steps = std::uint64_t{1} << 50;
  train.optimizer.learning_rate = 1e-3;
  return train;
}

// The workers that exchange one size of gradients and parameters.
class Workers {
 public:
  // Worker i stays on cores[i]; if `cores` is empty, the kernel chooses.
  Workers(asio::io_context& loop, PsCluster& cluster, transport::Transport& transport, const OpenShards& shards,
          const std::vector<std::uint32_t>& cores)
      : loop_(loop), cluster_(cluster) {
    for (const Member& member : shards.roster.members)
      workers_.push_back(std::make_unique<BenchWorker>(
          transport, cluster.config(), shards, member,
          cores.empty() ? cores : std::vector<std::uint32_t>{cores.at(member.task.index)},
          [this](Result<Duration> result) { asio::post(loop_, [this, result] { results_.push_back(result); }); }));
  }

  Status open() {
    return together([](BenchWorker& worker) { worker.open(); });
  }

  // Lets all workers make so many steps at the same time. Returns the longest time that one of them took.
  Result<double> run(Exchanged what, std::uint64_t steps) {
    const Status ran = together([&](BenchWorker& worker) { worker.run(what, steps); });
    if (!ran) return tl::unexpected<Error>(ran.error());
    double longest = 0.0;
    for (const Result<Duration>& result : results_) longest = std::max(longest, to_seconds(*result));
    return longest;
  }

  // Runs one round and adds its results.
  Status measure(const Kind& kind, std::uint64_t bytes, std::uint64_t steps, Measured& measured) {
    const Usage ps_before = ps_usage(), workers_before = usage();
    const Result<double> seconds = run(kind.what, steps);
    if (!seconds) return tl::unexpected<Error>(seconds.error());
    const Usage ps = ps_usage() - ps_before, own = usage() - workers_before;
    const double count = static_cast<double>(steps * workers_.size());
    measured.us.push_back(*seconds / static_cast<double>(steps) * 1e6);
    measured.gb_per_second.push_back(static_cast<double>(bytes) * count / *seconds / 1e9);
    measured.ps_cpu_us.push_back(ps.cpu_seconds / count * 1e6);
    measured.ps_wakeups.push_back(static_cast<double>(ps.wakeups) / count);
    measured.worker_cpu_us.push_back(own.cpu_seconds / count * 1e6);
    measured.worker_wakeups.push_back(static_cast<double>(own.wakeups) / count);
    return {};
  }

 private:
  template <typename Work>
  Status together(Work work) {
    results_.clear();
    for (const auto& worker : workers_) work(*worker);
    if (Status done = cluster_.run_until([this] { return results_.size() == workers_.size() || has_failed(); }); !done)
      return done;
    for (const Result<Duration>& result : results_)
      if (!result) return tl::unexpected<Error>(result.error());
    return {};
  }
  bool has_failed() const {
    return std::any_of(results_.begin(), results_.end(), [](const auto& result) { return !result; });
  }
  Usage ps_usage() const {
    Usage sum;
    for (const pid_t pid : cluster_.pids()) sum += usage_of_process(pid);
    return sum;
  }
  Usage usage() const {
    Usage sum;
    for (const auto& worker : workers_) sum += usage_of_thread(getpid(), worker->thread_id());
    return sum;
  }

  asio::io_context& loop_;
  PsCluster& cluster_;
  std::vector<Result<Duration>> results_;
  std::vector<std::unique_ptr<BenchWorker>> workers_;
};

// Finds out how many steps make a round. The steps that it runs for this also warm up memory and connections.
Result<std::uint64_t> steps_of_a_round(Workers& workers, Exchanged what) {
  std::uint64_t steps = kLeastSteps;
  for (;;) {
    const Result<double> seconds = workers.run(what, steps);
    if (!seconds) return tl::unexpected<Error>(seconds.error());
    const double wanted = static_cast<double>(steps) * kRoundSeconds / *seconds;
    if (*seconds > kRoundSeconds / 4) return std::clamp(static_cast<std::uint64_t>(wanted), kLeastSteps, kMostSteps);
    if (steps >= kMostSteps) return kMostSteps;
    steps = std::clamp(static_cast<std::uint64_t>(wanted), steps + 1, std::min(steps * 10, kMostSteps));
  }
}

// The cores for the ps and for the workers. Both lists are empty if the kernel chooses the cores.
struct Cores {
  std::vector<std::uint32_t> ps;
  std::vector<std::uint32_t> workers;
};

std::vector<std::uint32_t> cores_given() {
  cpu_set_t given;
  CPU_ZERO(&given);
  std::vector<std::uint32_t> cores;
  if (sched_getaffinity(0, sizeof(given), &given) != 0) return cores;
  for (std::uint32_t core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &given)) cores.push_back(core);
  return cores;
}

// If there are fewer cores than ps and workers, the kernel chooses.
Cores choose_cores(const BenchPsOptions& options) {
  const std::vector<std::uint32_t> given = cores_given();
  if (options.cores == "free" || given.size() < options.ps + options.workers) return {};
  const auto workers = given.begin() + options.ps;
  return {{given.begin(), workers}, {workers, workers + options.workers}};
}

Result<MeasuredSize> measure(const BenchPsOptions& options, std::uint64_t bytes, const Cores& cores,
                             asio::io_context& loop, transport::Transport& transport, PsCluster& cluster) {
  for (const pid_t pid : cluster.pids()) forget_peak_memory(pid);
  forget_peak_memory(getpid());
  Roster roster{RosterVersion(1), {}};
  for (std::uint32_t i = 0; i < options.workers; ++i)
    roster.members.push_back(Member{TaskId{Role::kWorker, i}, daemon::draw_incarnation()});
  const Result<OpenShards> shards = cluster.open(model_of(bytes, options.ps), training(), roster);
  if (!shards) return tl::unexpected<Error>(shards.error());
  Workers workers(loop, cluster, transport, *shards, cores.workers);
  if (Status opened = workers.open(); !opened) return tl::unexpected<Error>(opened.error());
  MeasuredSize size;
  size.bytes = bytes;
  for (const Kind& kind : kKinds) {
    const Result<std::uint64_t> steps = steps_of_a_round(workers, kind.what);
    if (!steps) return tl::unexpected<Error>(steps.error());
    Measured& measured = size.kinds.emplace_back();
    for (std::uint32_t round = 0; round < options.rounds; ++round)
      if (Status done = workers.measure(kind, bytes, *steps, measured); !done)
        return tl::unexpected<Error>(done.error());
  }
  for (const pid_t pid : cluster.pids()) size.ps_peak_bytes = std::max(size.ps_peak_bytes, peak_memory(pid));
  size.worker_peak_bytes = peak_memory(getpid());
  return size;
}

Json json_of(const MeasuredSize& size) {
  Json json = {{"bytes", size.bytes}};
  for (std::size_t i = 0; i < size.kinds.size(); ++i) {
    const Measured& measured = size.kinds[i];
    json[kKinds[i].key] = {{"us", json_of(spread_of(measured.us))},
                           {"gb_per_second", json_of(spread_of(measured.gb_per_second))},
                           {"ps_cpu_us", json_of(spread_of(measured.ps_cpu_us))},
                           {"ps_wakeups", json_of(spread_of(measured.ps_wakeups))},
                           {"worker_cpu_us", json_of(spread_of(measured.worker_cpu_us))},
                           {"worker_wakeups", json_of(spread_of(measured.worker_wakeups))}};
  }
  json["ps_peak_bytes"] = size.ps_peak_bytes;
  json["worker_peak_bytes"] = size.worker_peak_bytes;
  return json;
}

void print(const std::vector<MeasuredSize>& sizes) {
  Table table({"size", "exchange", "us per step", "GB/s", "ps CPU us", "ps wake-ups", "worker CPU us",
               "worker wake-ups", "ps peak"});
  for (const MeasuredSize& size : sizes)
    for (std::size_t i = 0; i < size.kinds.size(); ++i) {
      const Measured& measured = size.kinds[i];
      table.add({size_text(size.bytes), kKinds[i].name, spread_text(spread_of(measured.us)),
                 spread_text(spread_of(measured.gb_per_second)), figure_text(spread_of(measured.ps_cpu_us).median),
                 figure_text(spread_of(measured.ps_wakeups).median),
                 figure_text(spread_of(measured.worker_cpu_us).median),
                 figure_text(spread_of(measured.worker_wakeups).median), bytes_text(size.ps_peak_bytes)});
    }
  std::cout << table.text();
}

Status run(const BenchPsOptions& options, const Interrupts& interrupts, asio::io_context& loop) {
  const auto sizes = parse_sizes(options.sizes);
  if (!sizes) return tl::unexpected<Error>(sizes.error());
  for (const std::uint64_t bytes : *sizes)
    if (bytes / sizeof(float) < options.ps)
      return fail(ErrorCode::kUsage, "--sizes: " + size_text(bytes) + " is too small for " +
                                         std::to_string(options.ps) + " ps, because each ps needs at least 4 bytes");
  TransportConfig config;
  config.kind = options.transport;
  const auto transport = transport::make_transport(config, "bench");
  if (!transport) return tl::unexpected<Error>(transport.error());
  const Cores cores = choose_cores(options);
  const auto cluster = PsCluster::start(loop, **transport, config, options.address, options.ps, cores.ps,
                                        [&] { return interrupts.count() > 0; });
  if (!cluster) return tl::unexpected<Error>(cluster.error());
  if (!options.json)
    std::cout << "transport " << (*transport)->name() << ", " << options.ps << " ps, " << options.workers
              << (options.workers == 1 ? " worker" : " workers")
              << (cores.ps.empty() ? "" : ", each on a core of its own") << "; median of " << options.rounds
              << (options.rounds == 1 ? " round" : " rounds") << " (min - max)\n";
  std::vector<MeasuredSize> measured;
  for (const std::uint64_t bytes : *sizes) {
    auto size = measure(options, bytes, cores, loop, **transport, **cluster);
    if (!size) return tl::unexpected<Error>(size.error());
    measured.push_back(std::move(*size));
  }
  if (!options.json) {
    print(measured);
    return {};
  }
  Json json = {{"transport", (*transport)->name()},
               {"ps", options.ps},
               {"workers", options.workers},
               {"rounds", options.rounds},
               {"cores", cores.ps.empty() ? "free" : "apart"},
               {"sizes", Json::array()}};
  for (const MeasuredSize& size : measured) json["sizes"].push_back(json_of(size));
  std::cout << line_of(json) << '\n';
  return {};
}

}  // namespace

int bench_ps(const BenchPsOptions& options) {
  asio::io_context loop;
  const Interrupts interrupts(loop);
  const Status done = run(options, interrupts, loop);
  if (done) return 0;
  if (interrupts.count() > 0) return interrupts.exit_code();
  return daemon::report("disttrain bench ps", done.error());
}

}  // namespace disttrain::cli
