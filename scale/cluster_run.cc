// The simulator in tests/sim couldn't be used for this: it checks laws after each event, has random latencies and no
// bandwidth, and computes with real values.
#include "scale/cluster_run.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "chiefd/core/placement.h"
#include "scale/chief_host.h"
#include "scale/ps_host.h"
#include "scale/worker_host.h"

namespace disttrain::scale {
namespace {

ClusterConfig cluster_of(const RunOptions& options) {
  ClusterConfig cluster;
  cluster.chief.address = "chief:7100";
  cluster.ps.resize(options.ps_threads.size());
  cluster.workers.resize(options.workers);
  for (std::size_t i = 0; i < options.ps_threads.size(); ++i) {
    cluster.ps[i].address = "ps" + std::to_string(i) + ":7110";
    cluster.ps[i].shards = options.ps_threads[i];
  }
  for (std::uint32_t i = 0; i < options.workers; ++i)
    cluster.workers[i].address = "worker" + std::to_string(i) + ":7120";
  return cluster;
}

// How many global steps the job makes while each worker makes one step.
std::uint64_t steps_per_round(const RunOptions& options) {
  return options.job.train.mode == Mode::kSync ? 1 : options.workers;
}

JobConfig job_of(const RunOptions& options) {
  JobConfig job = options.job;
  job.checkpoint = CheckpointSection();
  job.evaluate = EvaluateSection();
  job.train.profile_steps = {0, 0};
  job.train.epochs = 0;
  // One step of warm-up before the measured steps, and one after them, so that they don't end the job.
  job.train.steps = (options.steps + 2) * steps_per_round(options);
  return job;
}

ModelSpec model_of(const RunOptions& options) {
  ModelSpec model = options.model;
  model.brings_values = false;
  return model;
}

struct Totals {
  Instant at;
  std::vector<Card> cards;
  CoreTimes cores;
};

class ClusterRun {
 public:
  explicit ClusterRun(const RunOptions& options)
      : options_(options),
        cluster_(cluster_of(options)),
        model_(model_of(options)),
        network_(queue_, options.speed),
        around_{.queue = queue_,
                .network = network_,
                .cluster = cluster_,
                .model = model_,
                .train_records = options.records,
                .compute = options.compute,
                .chief_core = Meter(options.clock),
                .chief_codec = Meter(options.clock),
                .ps_cores = Meter(options.clock),
                .worker_cores = Meter(options.clock)},
        chief_(around_, job_of(options), options.workers) {
    around_.chief = &chief_;
    for (const std::uint32_t threads : options.ps_threads)
      around_.ps.push_back(
          std::make_unique<PsHost>(around_, member(Role::kPs, static_cast<std::uint32_t>(around_.ps.size())), threads));
    for (std::uint32_t i = 0; i < options.workers; ++i)
      around_.workers.push_back(std::make_unique<WorkerHost>(around_, member(Role::kWorker, i)));
  }

  Result<RunReport> run() {
    auto layout =
        chiefd::place_on(model_, chiefd::placement_of(options_.job), options_.job.job.shards, options_.workers,
                         std::accumulate(options_.ps_threads.begin(), options_.ps_threads.end(), 0U));
    if (!layout) return tl::unexpected<Error>(std::move(layout.error()));
    report_.shards = layout->shards;
    report_.buckets = layout->buckets.size();
    report_.parameter_bytes = word_count(model_) * sizeof(float);
    start();
    const std::uint64_t round = steps_per_round(options_);
    if (!run_until([&] { return around_.global_step >= round; })) return failure();
    const Totals before = totals();
    const std::uint64_t first = around_.global_step;
    report_.startup = before.at - kBegin;
    around_.is_measuring = true;
    if (!run_until([&] { return around_.global_step >= (options_.steps + 1) * round; })) return failure();
    const Totals after = totals();
    report_.global_steps = around_.global_step - first;
    around_.is_measuring = false;
    heartbeats_again_ = chief_.handle_again();
    if (!run_until([&] { return chief_.is_over(); })) return failure();
    conclude(before, after);
    return std::move(report_);
  }

 private:
  static constexpr Instant kBegin{std::chrono::seconds(1000)};

  static Member member(Role role, std::uint32_t index) {
    return Member{TaskId{role, index}, Incarnation((std::uint64_t{static_cast<std::uint8_t>(role)} << 32) + index + 1)};
  }

  // The tasks begin one after the other, so that they don't send all their heartbeats at the same moment.
  void start() {
    chief_.start();
    const Duration interval = chief_.timeouts().heartbeat;
    const auto tasks = static_cast<std::int64_t>(around_.ps.size() + around_.workers.size());
    std::int64_t begun = 0;
    const auto next = [&] { return std::chrono::milliseconds(10) + interval * begun++ / tasks; };
    for (const auto& ps : around_.ps) ps->start(next());
    for (const auto& worker : around_.workers) worker->start(next());
  }

  template <typename IsDone>
  bool run_until(const IsDone& is_done) {
    while (!around_.failure && !is_done()) queue_.turn(Instant::max());
    return !around_.failure;
  }
  tl::unexpected<Error> failure() const {
    return fail(ErrorCode::kFailed, "the simulated job failed: " + *around_.failure);
  }

  Totals totals() const {
    return Totals{queue_.now(),
                  network_.cards(),
                  {around_.chief_core.spent(), around_.chief_codec.spent(), around_.ps_cores.spent(),
                   around_.worker_cores.spent()}};
  }

  void conclude(const Totals& before, const Totals& after) {
    report_.steps = options_.steps;
    report_.measured = after.at - before.at;
    report_.events = queue_.turns();
    for (std::size_t i = 0; i < after.cards.size(); ++i) {
      HostLoad load{after.cards[i].task};
      for (std::size_t t = 0; t < kTraffics; ++t) {
        load.sent[t] = after.cards[i].out.carried[t] - before.cards[i].out.carried[t];
        load.received[t] = after.cards[i].in.carried[t] - before.cards[i].in.carried[t];
      }
      report_.loads.push_back(load);
    }
    report_.cores = {after.cores.chief_core - before.cores.chief_core,
                     after.cores.chief_codec - before.cores.chief_codec, after.cores.ps_cores - before.cores.ps_cores,
                     after.cores.worker_cores - before.cores.worker_cores};
    count_heartbeats_anew();
    if (report_.measured > Duration::zero())
      report_.chief_share =
          to_seconds(report_.cores.chief_core.time + report_.cores.chief_codec.time) / to_seconds(report_.measured);
    find_busiest();
    find_bound();
    summarize_steps();
  }

  // Lets each heartbeat of the measured steps cost what it costs when the chief has a processor to itself.
  void count_heartbeats_anew() {
    const ChiefHost::Heartbeats& first = chief_.heartbeats();
    const ChiefHost::Heartbeats& again = heartbeats_again_;
    if (again.count == 0) return;
    const auto count = static_cast<std::int64_t>(first.count);
    const auto kept = static_cast<std::int64_t>(again.count);
    report_.cores.chief_core.time += again.core / kept * count - first.core;
    report_.cores.chief_codec.time += again.codec / kept * count - first.codec;
  }

  void find_busiest() {
    std::uint64_t most = 0;
    for (std::size_t i = 0; i < report_.loads.size(); ++i) {
      const std::uint64_t sent = report_.loads[i].total_sent().bytes;
      const std::uint64_t received = report_.loads[i].total_received().bytes;
      if (std::max(sent, received) <= most) continue;
      most = std::max(sent, received);
      report_.busiest = i;
      report_.is_busiest_sending = sent > received;
    }
    if (report_.measured > Duration::zero())
      report_.busiest_share = std::min(1.0, to_seconds(network_.time_of(most)) / to_seconds(report_.measured));
  }

  // A step can't be shorter than what a worker needs for it by itself: it computes, then sends its gradients, and then
  // receives the parameters. In async with several buckets per shard it receives parameters while it still sends
  // gradients. With train.pipeline it computes meanwhile.
  //
  // Nor can it be shorter than what the busiest ps needs for the messages of all workers. A ps sends and receives at
  // the same time, also in sync: the first workers that have their parameters push the next step while the ps still
  // sends to the others. But in sync a step needs all gradients, and each of them needs the parameters of the step
  // before. So when the ps has sent the last parameters, their worker must still compute and send. And before the ps
  // receives the first gradients, their worker must have received its parameters and computed.
  void find_bound() {
    Duration sent{};
    Duration received{};
    Duration ps_sent{};
    Duration ps_received{};
    for (const HostLoad& load : report_.loads) {
      constexpr auto kData = static_cast<std::size_t>(Traffic::kData);
      const Duration out = network_.time_of(load.sent[kData].bytes / options_.steps);
      const Duration in = network_.time_of(load.received[kData].bytes / options_.steps);
      if (load.task.role == Role::kPs) {
        ps_sent = std::max(ps_sent, out);
        ps_received = std::max(ps_received, in);
      } else if (load.task.role == Role::kWorker) {
        sent = std::max(sent, out);
        received = std::max(received, in);
      }
    }
    const TrainSection& train = options_.job.train;
    const bool streams = train.mode == Mode::kAsync && report_.buckets > report_.shards;
    const Duration exchange = streams ? std::max(sent, received) : sent + received;
    report_.worker_bound = train.pipeline > 0 ? std::max(options_.compute, exchange) : options_.compute + exchange;
    report_.ps_bound = std::max(ps_sent, ps_received);
    if (train.mode == Mode::kSync && train.aggregate == 0 && train.pipeline == 0)
      report_.ps_bound = options_.compute + std::max(ps_sent + sent, received + ps_received);
    report_.bound = std::max(report_.worker_bound, report_.ps_bound);
  }

  void summarize_steps() {
    std::vector<Duration>& times = around_.step_times;
    if (times.empty()) return;
    std::sort(times.begin(), times.end());
    report_.step_median = times[times.size() / 2];
    report_.step_p90 = times[times.size() * 9 / 10];
    const auto count = static_cast<std::int64_t>(times.size());
    report_.parts = {around_.parts.computing / count, around_.parts.sending / count, around_.parts.others / count,
                     around_.parts.receiving / count};
  }

  const RunOptions& options_;
  const ClusterConfig cluster_;
  const ModelSpec model_;
  EventQueue queue_{kBegin};
  Network network_;
  Surroundings around_;
  ChiefHost chief_;
  ChiefHost::Heartbeats heartbeats_again_;
  RunReport report_;
};

}  // namespace

Result<RunReport> run(const RunOptions& options) {
  return ClusterRun(options).run();
}

}  // namespace disttrain::scale
