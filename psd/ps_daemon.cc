#include "psd/ps_daemon.h"

#include <asio/post.hpp>
#include <utility>

#include "common/config/reader/reader.h"
#include "common/daemon/clock.h"
#include "common/daemon/host.h"
#include "common/daemon/threads.h"
#include "shards/visited_log.h"

namespace disttrain::psd {

namespace {

// The most writers of jobs that have ended. They end soon, except on a file system that hangs. Such a writer may still
// hold a copy of its job's shards.
constexpr std::size_t kMostRetired = 4;

std::uint32_t threads_of(const PsConfig& config) {
  if (config.shards != 0) return config.shards;
  return config.cores.empty() ? daemon::cores_given() : static_cast<std::uint32_t>(config.cores.size());
}

std::uint64_t memory_of(const PsConfig& config) {
  return config.memory_bytes != 0 ? config.memory_bytes : daemon::memory_given();
}

}  // namespace

PsDaemon::PsDaemon(asio::io_context& loop, transport::Transport& transport, checkpoint::Files& files,
                   daemon::Startup startup, daemon::Log& log, Hung hung)
    : loop_(loop),
      transport_(transport),
      files_(files),
      log_(log),
      hung_(std::move(hung)),
      startup_(std::move(startup)),
      metrics_(startup_.task),
      membership_(loop, transport, log, startup_, metrics_.requests(), membership_handlers()),
      host_{.threads = threads_,
            .files = files_,
            .log = log_,
            .post = [this](std::function<void()> task) { post(std::move(task)); },
            .tell = [this](wire::ControlMessage message) { membership_.tell(std::move(message)); },
            .tell_trace = [this](TraceEvents piece) { membership_.tell_trace(std::move(piece)); },
            .beat_now = [this] { membership_.beat_now(); },
            .note = [this](ShardId shard, const shards::ShardFigures& figures) { metrics_.heard(shard, figures); },
            .retire =
                [this](std::unique_ptr<shards::CheckpointWriter> writer) { retired_.push_back(std::move(writer)); }} {}

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

  interval_ = membership_.timeouts().interval;
  for (std::uint32_t i = 0; i < threads_of(config); ++i) start_thread(i);
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
                if (job_) job_->repeat_reports();
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
    hello.job = job_->facts().job;
    hello.generation = job_->facts().generation;
    hello.token = job_->facts().token;
  }
  return hello;
}

void PsDaemon::on_refused(const Error& why) {
  exit_code_ = daemon::report(log_, why);
  stop();
}

shards::HeldJob* PsDaemon::open_job(JobId job, Generation generation) {
  return job_ && job_->is_open(job, generation) ? job_.get() : nullptr;
}

void PsDaemon::fail_job(JobId job, Generation generation, const Error& error) {
  log_.error("job " + std::to_string(job.value) + ": " + error.message);
  membership_.tell(TaskFailed{job, generation, error.code, error.message});
}

void PsDaemon::take(const CreateShards& order) {
  if (shards::HeldJob* job = open_job(order.job, order.generation)) return job->repeat_created();
  if (!is_newer(order)) return;
  next_ = order;
  drop_job();
}

// Returns true if this order is newer than the order that the ps is carrying out or has carried out. An older order may
// arrive after a newer one. For one job, the order with the higher generation counts.
bool PsDaemon::is_newer(const CreateShards& order) const {
  if (next_ && next_->job == order.job) return order.generation >= next_->generation;
  return !job_ || job_->is_dropping() || job_->facts().job != order.job || order.generation > job_->facts().generation;
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
  retired_.remove_if([](const auto& writer) { return writer->is_over(); });
  if (retired_.size() >= kMostRetired)
    return fail_job(order.job, order.generation,
                    Error{ErrorCode::kUnavailable, "the checkpoints of " + std::to_string(kMostRetired) +
                                                       " ended jobs still hang in their file systems: check these, and "
                                                       "restart this ps"});
  auto facts = std::make_shared<shards::ShardJob>();
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
  facts->visited_folder = shards::VisitedLog::folder();
  facts->self = membership_.self();
  facts->cluster = startup_.cluster.name;
  facts->cluster_hash = startup_.cluster.hash;
  facts->credits = startup_.cluster.transport.credits;
  facts->timeouts = membership_.timeouts();
  is_releasing_ = false;
  job_ = std::make_unique<shards::HeldJob>(host_, facts);
  metrics_.begin(facts->config.job.name, facts->checkpoint_folder, job_->shards());
}

void PsDaemon::take(const SetRoster& order) {
  if (shards::HeldJob* job = open_job(order.job, order.generation)) job->set_roster(order);
}

void PsDaemon::take(const FenceWorker& order) {
  if (shards::HeldJob* job = open_job(order.job, order.generation)) job->fence(order.worker);
}

void PsDaemon::take(const PrepareCheckpoint& order) {
  if (shards::HeldJob* job = open_job(order.job, order.generation)) job->prepare(order);
}

void PsDaemon::take(const AbandonCheckpoint& order) {
  if (shards::HeldJob* job = open_job(order.job, order.generation)) job->abandon(order);
}

void PsDaemon::take(const TakeCut& order) {
  if (shards::HeldJob* job = open_job(order.job, order.generation)) job->take_cut(order);
}

void PsDaemon::take(const CloseJob& order) {
  if (next_ && next_->job == order.job && next_->generation <= order.generation) next_.reset();
  const bool is_held = job_ && job_->facts().job == order.job;
  if (is_held && (job_->is_dropping() || job_->facts().generation == order.generation)) {
    if (!job_->is_dropping()) log_.info("job " + std::to_string(order.job.value) + " closes: " + order.reason);
    closing_.insert(order.job);
    return drop_job();
  }
  membership_.tell(JobClosed{order.job});
}

void PsDaemon::drop_job() {
  if (!job_) return after_drop();
  // The next generation of a job may need the same files, and then it waits for them.
  const bool is_over = !next_ || next_->job != job_->facts().job;
  const auto is_gone = std::make_shared<bool>(false);
  job_->drop([this, is_gone] {
    *is_gone = true;
    job_.reset();
    log_.set_job("");
    after_drop();
  });
  if (*is_gone || !is_over || std::exchange(is_releasing_, true)) return;
  for (const auto& release : releases_) release->begin(hung_.patience);
}

void PsDaemon::after_drop() {
  for (const JobId job : std::exchange(closing_, {})) membership_.tell(JobClosed{job});
  if (next_) create(*std::exchange(next_, std::nullopt));
}

// --- The threads

void PsDaemon::start_thread(std::uint32_t index) {
  const PsConfig& config = startup_.cluster.ps.at(startup_.task.index);
  std::vector<std::uint32_t> cores;
  if (!config.cores.empty()) cores.push_back(config.cores[index % config.cores.size()]);
  const auto upward = [this](const shards::ShardNews& news) { post([this, news] { on_news(news); }); };
  shards::ShardThread& thread = *threads_.emplace_back(
      std::make_unique<shards::ShardThread>(index, cores, interval_ / 2, transport_, files_, log_, upward));
  releases_.push_back(std::make_unique<daemon::ReleaseDeadline>(
      loop_,
      daemon::ReleaseDeadline::Thread{.post =
                                          [&thread](std::function<void()> task) {
                                            thread.run([work = std::move(task)](shards::ShardThread&) { work(); });
                                          },
                                      .turns = [this, &thread] { return thread.turns() + (job_ ? job_->work() : 0); }},
      [this](const std::string& missed) { on_hung(missed); }, 4 * hung_.patience));
}

// The file system of a job that is over may have gone away while a thread reads a checkpoint. The next job's shards
// would wait behind it.
void PsDaemon::on_hung(const std::string& missed) {
  log_.error((job_ ? "job " + std::to_string(job_->facts().job.value) : "the last job") +
             " is over for this ps, but a file still keeps a thread of its shards, which " + missed +
             ": ending this process with exit code " + std::to_string(daemon::kHungCode) +
             ", so that it is started again without the job");
  asio::post(loop_, [this, alive = alive_] {
    if (!*alive) return;
    membership_.close();
    hung_.end();
  });
}

// --- The shards

void PsDaemon::on_news(const shards::ShardNews& news) {
  if (job_ && job_->facts().job == news.job && job_->facts().generation == news.generation) job_->hear(news);
}

// --- Leaving, and the state for systemd

void PsDaemon::leave() {
  const bool may_save = job_ && !job_->facts().checkpoint_folder.empty();
  membership_.leave(membership_.timeouts().leave_ps, may_save ? "a checkpoint" : "");
}

std::vector<daemon::WatchedLoop> PsDaemon::loops() {
  std::vector<daemon::WatchedLoop> loops;
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    shards::ShardThread& thread = *threads_[i];
    loops.push_back({"shard-" + std::to_string(i),
                     [&thread](std::function<void()> task) {
                       thread.run([work = std::move(task)](shards::ShardThread&) { work(); });
                     },
                     [&thread] { return thread.turns(); }});
  }
  return loops;
}

daemon::ServiceState PsDaemon::state() const {
  daemon::ServiceState state = membership_.state(job_ ? job_->text() : "");
  state.is_busy = state.is_busy || (job_ && (!job_->is_created() || job_->is_writing()));
  return state;
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
  if (job_) job_->ask_for_reports();
}

Heartbeat PsDaemon::make_heartbeat() const {
  Heartbeat beat;
  for (const auto& thread : threads_) beat.turns.push_back(thread->turns());
  if (job_) job_->add_to(beat);
  return beat;
}

}  // namespace disttrain::psd
