#include "psd/ps_daemon.h"

#include <asio/post.hpp>
#include <new>
#include <utility>

#include "common/config/reader/reader.h"
#include "common/daemon/clock.h"
#include "common/daemon/host.h"
#include "common/daemon/threads.h"
#include "common/format_duration.h"
#include "psd/visited_log.h"

namespace disttrain::psd {

namespace {

std::uint32_t threads_of(const PsConfig& config) {
  if (config.shards != 0) return config.shards;
  return config.cores.empty() ? daemon::cores_given() : static_cast<std::uint32_t>(config.cores.size());
}

std::uint64_t memory_of(const PsConfig& config) {
  return config.memory_bytes != 0 ? config.memory_bytes : daemon::memory_given();
}

}  // namespace

PsDaemon::PsDaemon(asio::io_context& loop, transport::Transport& transport, checkpoint::Files& files,
                   daemon::Startup startup, daemon::Log& log)
    : loop_(loop),
      transport_(transport),
      files_(files),
      log_(log),
      startup_(std::move(startup)),
      metrics_(startup_.task),
      membership_(loop, transport, log, startup_, metrics_.requests(), membership_handlers()),
      writer_(files_, [this](std::function<void()> task) { post(std::move(task)); }) {}

PsDaemon::~PsDaemon() {
  *alive_ = false;
  membership_.close();
}

template <typename Task>
void PsDaemon::post(Task task) {
  asio::post(loop_, [alive = alive_, work = std::move(task)]() mutable {
    if (*alive) work();
  });
}

Status PsDaemon::start() {
  const PsConfig& config = startup_.cluster.ps.at(startup_.task.index);
  const TransportConfig& limits = startup_.cluster.transport;
  auto listener = transport_.listen(loop_, startup_.listen_address,
                                    {max_connections_of(startup_.cluster, threads_of(config)), limits.hello_timeout},
                                    [this](std::unique_ptr<transport::Arrival> a) { on_arrival(std::move(a)); });
  if (!listener) return tl::unexpected(listener.error());
  listener_ = std::move(*listener);
  if (startup_.address.ends_with(":0")) startup_.address = listener_->address();

  const auto upward = [this](const ShardNews& news) { post([this, news] { on_news(news); }); };
  interval_ = membership_.timeouts().interval;
  for (std::uint32_t i = 0; i < threads_of(config); ++i) {
    std::vector<std::uint32_t> cores;
    if (!config.cores.empty()) cores.push_back(config.cores[i % config.cores.size()]);
    threads_.push_back(std::make_unique<ShardThread>(i, cores, interval_ / 2, transport_, files_, log_, upward));
  }
  log_.info(
      daemon::banner(startup_.cluster, startup_.task, startup_.address, transport_.name(), startup_.metrics_address) +
      "; " + std::to_string(threads_.size()) + " shard threads; waiting for the chief at " +
      startup_.cluster.chief.address);
  membership_.open();
  return {};
}

// --- The chief

task::Handlers PsDaemon::membership_handlers() {
  return {.make_hello = [this] { return make_hello(); },
          .make_heartbeat = [this] { return make_heartbeat(); },
          .before_heartbeat = [this] { before_heartbeat(); },
          .on_order = [this](const auto& message) { std::visit([this](const auto& order) { take(order); }, message); },
          .on_other_journal =
              [this] {
                log_.warn("the chief has another journal and doesn't know this ps's job: dropping the job");
                next_.reset();
                drop_job();
              },
          .on_registered =
              [this] {
                if (!job_ || dropping_) return;
                if (job_->failed) membership_.tell(*job_->failed);
                for (const wire::ControlMessage& report : job_->attempt.said) membership_.tell(report);
              },
          .on_refused = [this](const Error& why) { on_refused(why); },
          .without_chief = [this] { return std::string(job_ ? "training goes on" : ""); },
          .end = [this] { stop(); }};
}

TaskHello PsDaemon::make_hello() const {
  TaskHello hello;
  hello.shards = static_cast<std::uint32_t>(threads_.size());
  hello.memory_bytes = memory_of(startup_.cluster.ps.at(startup_.task.index));
  if (job_) {
    hello.job = job_->facts->job;
    hello.generation = job_->facts->generation;
    hello.token = job_->facts->token;
  }
  return hello;
}

void PsDaemon::on_refused(const Error& why) {
  exit_code_ = daemon::report(log_, why);
  stop();
}

bool PsDaemon::is_open(JobId job, Generation generation) const {
  return job_ && !dropping_ && job_->facts->job == job && job_->facts->generation == generation;
}

void PsDaemon::fail_job(JobId job, Generation generation, const Error& error) {
  log_.error("job " + std::to_string(job.value) + ": " + error.message);
  membership_.tell(TaskFailed{job, generation, error.code, error.message});
}

void PsDaemon::take(const CreateShards& order) {
  if (is_open(order.job, order.generation)) {
    if (job_->created) membership_.tell(ShardsCreated{order.job, order.generation});
    return;
  }
  if (!is_newer(order)) return;
  next_ = order;
  drop_job();
}

// Returns true if this order is newer than the order that the ps is carrying out or has carried out. An older order may
// arrive after a newer one. For one job, the order with the higher generation counts.
bool PsDaemon::is_newer(const CreateShards& order) const {
  if (next_ && next_->job == order.job) return order.generation >= next_->generation;
  return !job_ || dropping_ || job_->facts->job != order.job || order.generation > job_->facts->generation;
}

void PsDaemon::create(const CreateShards& order) {
  if (Status sane = config::check_ranges(*order.config); !sane)
    return fail_job(order.job, order.generation, sane.error());
  if (order.owners.size() != order.layout.shards || order.roster.members.empty())
    return fail_job(order.job, order.generation,
                    Error{ErrorCode::kSoftware, "the chief's order names " + std::to_string(order.owners.size()) +
                                                    " owners for " + std::to_string(order.layout.shards) +
                                                    " shards, and " + std::to_string(order.roster.members.size()) +
                                                    " workers; expected one owner per shard, and at least one worker"});
  auto facts = std::make_shared<ShardJob>();
  facts->job = order.job;
  facts->generation = order.generation;
  facts->token = order.token;
  facts->config = *order.config;
  facts->layout = order.layout;
  facts->owners = order.owners;
  facts->roster = order.roster;
  facts->warmup_steps = order.warmup_steps;
  facts->train_records = order.train_records;
  facts->places = order.places;
  facts->checkpoint_folder = order.checkpoint_folder;
  facts->checkpoint_mark = order.checkpoint_mark;
  facts->restore_path = order.restore_path;
  facts->init_path = order.init_path;
  facts->visited_folder = VisitedLog::folder();
  facts->self = membership_.self();
  facts->cluster = startup_.cluster.name;
  facts->cluster_hash = startup_.cluster.hash;
  facts->credits = startup_.cluster.transport.credits;
  facts->timeouts = membership_.timeouts();
  job_.emplace();
  job_->facts = facts;
  job_->setup = std::make_shared<ShardSetup>();
  job_->ordered = daemon::now();
  for (std::uint32_t shard = 0; shard < order.layout.shards; ++shard)
    if (order.owners[shard].ps == membership_.self())
      job_->threads.emplace(ShardId(shard), job_->threads.size() % threads_.size());
  std::vector<ShardId> own;
  for (const auto& [shard, thread] : job_->threads) own.push_back(shard);
  metrics_.begin(facts->config.job.name, facts->checkpoint_folder, own);
  log_.set_job(facts->config.job.name);
  log_.info("job " + std::to_string(order.job.value) + " \"" + facts->config.job.name + "\": making " +
            std::to_string(job_->threads.size()) + " of " + std::to_string(order.layout.shards) + " shards");
  for (const auto& [shard, thread] : job_->threads)
    threads_[thread]->run([facts, setup = job_->setup, id = shard](ShardThread& on) {
      const auto fail = [&](ErrorCode code, const std::string& why) {
        if (setup->is_abandoned()) return;
        const TaskFailed failed{facts->job, facts->generation, code,
                                "can't make shard " + std::to_string(id.value) + ": " + why};
        on.place().upward(ShardNews{facts->job, facts->generation, wire::ControlMessage(failed)});
      };
      try {
        Result<std::unique_ptr<ShardService>> made = ShardService::make(on.place(), facts, id, *setup);
        if (!made) return fail(made.error().code, made.error().message);
        on.services()[id] = std::move(*made);
      } catch (const std::bad_alloc&) {
        fail(ErrorCode::kUnavailable, "the host has no memory for it");
      } catch (const std::exception& error) {
        fail(ErrorCode::kSoftware, error.what());
      }
    });
  if (job_->threads.empty()) {
    job_->created = true;
    membership_.tell(ShardsCreated{order.job, order.generation});
  }
}

void PsDaemon::take(const SetRoster& order) {
  if (!is_open(order.job, order.generation) || !job_->threads.contains(ShardId(0))) return;
  on_shard(ShardId(0), [order](ShardService& shard) { shard.set_roster(order.roster, order.ends); });
}

void PsDaemon::take(const FenceWorker& order) {
  if (!is_open(order.job, order.generation)) return;
  for (const auto& [shard, thread] : job_->threads)
    on_shard(shard, [worker = order.worker](ShardService& service) { service.fence(worker); });
}

void PsDaemon::take(const CloseJob& order) {
  if (next_ && next_->job == order.job && next_->generation <= order.generation) next_.reset();
  const bool is_held = job_ && job_->facts->job == order.job;
  if (is_held && (dropping_ || job_->facts->generation == order.generation)) {
    if (!dropping_) log_.info("job " + std::to_string(order.job.value) + " closes: " + order.reason);
    closing_.insert(order.job);
    return drop_job();
  }
  membership_.tell(JobClosed{order.job});
}

// Ends the job's shards. Each shard sends its last report before it ends.
void PsDaemon::drop_job() {
  if (!job_) return after_drop();
  if (dropping_) return;
  dropping_ = true;
  job_->setup->abandon();
  writer_.cancel();
  const auto done = [this, left = std::make_shared<std::size_t>(job_->threads.size())] {
    if (*left > 0 && --*left > 0) return;
    job_.reset();
    log_.set_job("");
    dropping_ = false;
    after_drop();
  };
  if (job_->threads.empty()) return done();
  for (const auto& [shard, thread] : job_->threads)
    threads_[thread]->run([this, id = shard, done](ShardThread& on) {
      const auto service = on.services().find(id);
      if (service != on.services().end()) {
        service->second->report(true);
        on.services().erase(service);
      }
      post(done);
    });
}

void PsDaemon::after_drop() {
  for (const JobId job : std::exchange(closing_, {})) membership_.tell(JobClosed{job});
  if (next_) create(*std::exchange(next_, std::nullopt));
}

// --- The shards

void PsDaemon::on_news(const ShardNews& news) {
  if (!job_ || job_->facts->job != news.job || job_->facts->generation != news.generation) return;
  std::visit([this](const auto& n) { hear(n); }, news.what);
}

void PsDaemon::hear(const wire::ControlMessage& message) {
  const TaskFailed* failed = std::get_if<TaskFailed>(&message);
  if (failed != nullptr && is_open(failed->job, failed->generation) && !job_->failed) job_->failed = *failed;
  const CheckpointFailed* gave_up = std::get_if<CheckpointFailed>(&message);
  if (gave_up == nullptr) return membership_.tell(message);
  if (is_at(gave_up->job, gave_up->generation, gave_up->attempt)) say(*gave_up);
}

void PsDaemon::hear(const ShardMade& made) {
  if (!dropping_) job_->made.insert(made.shard);
}

void PsDaemon::hear(const ShardReady& ready) {
  if (dropping_) return;
  job_->ready.insert(ready.shard);
  if (job_->created || job_->ready.size() < job_->threads.size()) return;
  job_->created = true;
  const std::string& path = job_->facts->restore_path;
  log_.info("job " + std::to_string(job_->facts->job.value) + ": made its shards in " +
            format_duration(daemon::now() - job_->ordered) + (path.empty() ? "" : ", from " + path));
  membership_.tell(ShardsCreated{job_->facts->job, job_->facts->generation});
}

void PsDaemon::hear(const ShardSays& says) {
  job_->versions[says.shard] = says.version;
  const ShardFigures& figures = says.figures;
  job_->loads[says.shard] = {says.shard, figures.lived, figures.busy,
                             std::chrono::duration_cast<Duration>(std::chrono::duration<double>(figures.apply.sum()))};
  if (says.pacer) job_->pacer = says.pacer;
  log_.set_step(job_->pacer ? job_->pacer->global_step.value : newest_version().value);
  metrics_.heard(says.shard, says.figures);
  if (says.at_once && says.pacer) membership_.beat_now();
}

// Sends the trace of all shards to the chief when the last shard has told its part.
void PsDaemon::hear(const ShardTraced& traced) {
  TraceTake& trace = job_->trace;
  trace.events.insert(trace.events.end(), traced.take->events.begin(), traced.take->events.end());
  trace.dropped += traced.take->dropped;
  if (++job_->traced < job_->threads.size()) return;
  if (trace.dropped > 0)
    log_.warn("the trace lacks " + std::to_string(trace.dropped) +
              " events of this ps, because a shard keeps at most " + std::to_string(kMaxTraceEvents) +
              "; set train.profile_steps to fewer steps");
  for (TraceEvents& piece : pieces_of(job_->facts->job, job_->facts->generation, std::exchange(trace, {})))
    membership_.tell_trace(std::move(piece));
}

// --- Leaving, and the state for systemd

void PsDaemon::leave() {
  const bool may_save = job_ && !job_->facts->checkpoint_folder.empty();
  membership_.leave(membership_.timeouts().leave_ps, may_save ? "a checkpoint" : "");
}

std::vector<daemon::WatchedLoop> PsDaemon::loops() {
  std::vector<daemon::WatchedLoop> loops;
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    ShardThread& thread = *threads_[i];
    loops.push_back(
        {"shard-" + std::to_string(i),
         [&thread](std::function<void()> task) { thread.run([work = std::move(task)](ShardThread&) { work(); }); },
         [&thread] { return thread.turns(); }});
  }
  return loops;
}

daemon::ServiceState PsDaemon::state() const {
  const bool is_made = job_ && job_->created;
  daemon::ServiceState state = membership_.state(job_text());
  state.is_busy = state.is_busy || (job_ && !is_made) || writer_.is_busy();
  return state;
}

std::string PsDaemon::job_text() const {
  if (!job_) return "";
  const std::size_t missing = job_->threads.size() - std::min(job_->threads.size(), job_->ready.size());
  const std::string text = "job " + job_->facts->config.job.name + ", step " + std::to_string(newest_version().value);
  if (dropping_) return text + ", closing";
  if (!job_->created)
    return text + (job_->facts->restore_path.empty() ? ", making " : ", restoring ") + std::to_string(missing) +
           " of " + std::to_string(job_->threads.size()) + " shards";
  return text + (writer_.is_busy() ? ", saving a checkpoint" : "");
}

void PsDaemon::change(const ClusterConfig& cluster) {
  membership_.change(cluster);
  startup_.cluster = cluster;
}

// --- Heartbeats

// The chief sets the heartbeat interval and may change it. Then the shard threads change their ticks, too.
void PsDaemon::before_heartbeat() {
  const Duration interval = membership_.timeouts().interval;
  if (std::exchange(interval_, interval) != interval)
    for (const auto& thread : threads_) thread->set_tick(interval / 2);
  if (!job_ || dropping_) return;
  for (const auto& [shard, thread] : job_->threads)
    on_shard(shard, [](ShardService& service) { service.report(false); });
}

Heartbeat PsDaemon::make_heartbeat() const {
  Heartbeat beat;
  for (const auto& thread : threads_) beat.turns.push_back(thread->turns());
  if (!job_) return beat;
  beat.job = job_->facts->job;
  beat.generation = job_->facts->generation;
  beat.phase = Phase::kWait;
  beat.steps = newest_version().value;
  if (job_->pacer != nullptr) beat.pacer = *job_->pacer;
  beat.work = job_->setup->pieces() + writer_.pieces();
  for (const auto& [shard, load] : job_->loads) beat.shards.push_back(load);
  if (beat.pacer) {
    beat.examples = beat.pacer->examples;
    beat.loss = beat.pacer->loss;
  }
  return beat;
}

Step PsDaemon::newest_version() const {
  Step newest;
  for (const auto& [shard, version] : job_->versions) newest = std::max(newest, version);
  return newest;
}

}  // namespace disttrain::psd
