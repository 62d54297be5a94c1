// A ps keeps only the newest order to restore. If it is restoring for an older order, it abandons that restore at its
// next piece, so it never holds the memory of two generations. A ps that was lost twice in a minute got three such
// orders in a row.
#include "shards/held_job.h"

#include <algorithm>
#include <new>
#include <variant>

#include "common/daemon/clock.h"
#include "common/format_duration.h"

namespace disttrain::shards {
namespace {

std::string name_of(JobId job, ShardId shard) {
  return "shard " + std::to_string(shard.value) + " of job " + std::to_string(job.value);
}

}  // namespace

HeldJob::HeldJob(JobHost& host, ShardJobPtr job)
    : host_(host),
      job_(std::move(job)),
      writer_(std::make_unique<CheckpointWriter>(host_.files, host_.post)),
      ordered_(daemon::now()) {
  for (std::uint32_t shard = 0; shard < job_->layout.shards; ++shard)
    if (job_->owners[shard].ps == job_->self) threads_.emplace(ShardId(shard), threads_.size() % host_.threads.size());
  host_.log.set_job(job_->config.job.name);
  host_.log.info("job " + std::to_string(job_->job.value) + " \"" + job_->config.job.name + "\": making " +
                 std::to_string(threads_.size()) + " of " + std::to_string(job_->layout.shards) + " shards");
  make_shards();
  if (threads_.empty()) tell_created();
}

HeldJob::~HeldJob() {
  *alive_ = false;
  writer_->close();
  host_.retire(std::move(writer_));
}

void HeldJob::make_shards() {
  for (const auto& [shard, thread] : threads_)
    host_.threads[thread]->run([job = job_, setup = setup_, id = shard](ShardThread& on) {
      const auto fail = [&](ErrorCode code, const std::string& why) {
        if (setup->is_abandoned()) return;
        const TaskFailed failed{job->job, job->generation, code,
                                "can't make shard " + std::to_string(id.value) + ": " + why};
        on.place().upward(ShardNews{job->job, job->generation, wire::ControlMessage(failed)});
      };
      try {
        Result<std::unique_ptr<ShardService>> made = ShardService::make(on.place(), job, id, *setup);
        if (!made) return fail(made.error().code, made.error().message);
        on.services()[id] = std::move(*made);
      } catch (const std::bad_alloc&) {
        fail(ErrorCode::kUnavailable, "the host has no memory for it");
      } catch (const std::exception& error) {
        fail(ErrorCode::kSoftware, error.what());
      }
    });
}

std::vector<ShardId> HeldJob::shards() const {
  std::vector<ShardId> own;
  for (const auto& [shard, thread] : threads_) own.push_back(shard);
  return own;
}

bool HeldJob::is_open(JobId job, Generation generation) const {
  return !is_dropping_ && job_->job == job && job_->generation == generation;
}

void HeldJob::tell_created() {
  is_created_ = true;
  host_.tell(ShardsCreated{job_->job, job_->generation});
}

void HeldJob::repeat_created() {
  if (is_created_) host_.tell(ShardsCreated{job_->job, job_->generation});
}

void HeldJob::repeat_reports() {
  if (is_dropping_) return;
  if (failed_) host_.tell(*failed_);
  for (const wire::ControlMessage& report : attempt_.said) host_.tell(report);
}

// --- Orders and arrivals

void HeldJob::set_roster(const SetRoster& order) {
  if (!is_open(order.job, order.generation) || !threads_.contains(ShardId(0))) return;
  on_shard(ShardId(0), [order](ShardService& shard) { shard.set_roster(order.roster, order.ends); });
}

void HeldJob::fence(const Member& worker) {
  if (is_dropping_) return;
  for (const auto& [shard, thread] : threads_)
    on_shard(shard, [worker](ShardService& service) { service.fence(worker); });
}

// While the shard's thread makes a shard, which may take hours, it leaves an arrival without an answer, so that this
// process looks unreachable. Most shards are made quickly, though, and then the arrival needn't come again.
bool HeldJob::answers(ShardId shard) const {
  const auto found = threads_.find(shard);
  if (found == threads_.end()) return false;
  if (daemon::now() - ordered_ < job_->timeouts.silent / 2) return true;
  return std::all_of(threads_.begin(), threads_.end(),
                     [&](const auto& other) { return other.second != found->second || made_.contains(other.first); });
}

std::string HeldJob::lacks(JobId job, ShardId shard) {
  return name_of(job, shard) + " isn't on this process, or isn't made yet";
}

std::optional<Refused> HeldJob::check(JobId job, Generation generation, ShardId shard, std::uint64_t token) const {
  if (!is_open(job, generation) || !answers(shard)) return Refused{ErrorCode::kTemporary, lacks(job, shard)};
  if (token != job_->token) return Refused{ErrorCode::kNoPermission, name_of(job, shard) + ": the token is wrong"};
  return std::nullopt;
}

void HeldJob::adopt_channel(std::unique_ptr<transport::Arrival> arrival, ShardId shard, const Member& worker) {
  on_shard(shard,
           [worker, moved = std::move(arrival)](ShardService& service) { service.adopt_channel(*moved, worker); });
}

void HeldJob::adopt_peer(std::unique_ptr<transport::Arrival> arrival, ShardId from) {
  on_shard(ShardId(0), [from, moved = std::move(arrival)](ShardService& pacer) { pacer.adopt_peer(*moved, from); });
}

// --- The end

void HeldJob::drop(std::function<void()> done) {
  if (is_dropping_) return;
  is_dropping_ = true;
  setup_->abandon();
  writer_->cancel();
  if (threads_.empty()) return done();
  const auto ended = [done = std::move(done), left = std::make_shared<std::size_t>(threads_.size())] {
    if (--*left == 0) done();
  };
  for (const auto& [shard, thread] : threads_)
    host_.threads[thread]->run([post = host_.post, id = shard, ended](ShardThread& on) {
      const auto service = on.services().find(id);
      if (service != on.services().end()) {
        service->second->report(true);
        on.services().erase(service);
      }
      post(ended);
    });
}

// --- News of the shards

void HeldJob::hear(const ShardNews& news) {
  std::visit([this](const auto& what) { take(what); }, news.what);
}

void HeldJob::take(const wire::ControlMessage& message) {
  const TaskFailed* failed = std::get_if<TaskFailed>(&message);
  if (failed != nullptr && !is_dropping_ && !failed_) failed_ = *failed;
  const CheckpointFailed* gave_up = std::get_if<CheckpointFailed>(&message);
  if (gave_up == nullptr) return host_.tell(message);
  if (is_at(gave_up->job, gave_up->generation, gave_up->attempt)) say(*gave_up);
}

void HeldJob::take(const ShardMade& made) {
  if (!is_dropping_) made_.insert(made.shard);
}

void HeldJob::take(const ShardReady& ready) {
  if (is_dropping_) return;
  ready_.insert(ready.shard);
  if (is_created_ || ready_.size() < threads_.size()) return;
  const std::string& path = job_->restore_path;
  host_.log.info("job " + std::to_string(job_->job.value) + ": made its shards in " +
                 format_duration(daemon::now() - ordered_) + (path.empty() ? "" : ", from " + path));
  tell_created();
}

void HeldJob::take(const ShardSays& says) {
  versions_[says.shard] = says.version;
  const ShardFigures& figures = says.figures;
  loads_[says.shard] = {says.shard, figures.lived, figures.busy,
                        std::chrono::duration_cast<Duration>(std::chrono::duration<double>(figures.apply.sum()))};
  if (says.pacer) pacer_ = says.pacer;
  host_.log.set_step(pacer_ ? pacer_->global_step.value : newest_version().value);
  host_.note(says.shard, says.figures);
  if (says.at_once && says.pacer) host_.beat_now();
}

// Sends the trace of all shards to the chief when the last shard has told its part.
void HeldJob::take(const ShardTraced& traced) {
  trace_.events.insert(trace_.events.end(), traced.take->events.begin(), traced.take->events.end());
  trace_.dropped += traced.take->dropped;
  if (++traced_ < threads_.size()) return;
  if (trace_.dropped > 0)
    host_.log.warn("the trace lacks " + std::to_string(trace_.dropped) +
                   " events of this process, because a shard keeps at most " + std::to_string(kMaxTraceEvents) +
                   "; set train.profile_steps to fewer steps");
  for (TraceEvents& piece : pieces_of(job_->job, job_->generation, std::exchange(trace_, {})))
    host_.tell_trace(std::move(piece));
}

// --- Heartbeats, and the state for systemd

void HeldJob::ask_for_reports() {
  if (is_dropping_) return;
  for (const auto& [shard, thread] : threads_) on_shard(shard, [](ShardService& service) { service.report(false); });
}

void HeldJob::add_to(Heartbeat& beat) const {
  beat.job = job_->job;
  beat.generation = job_->generation;
  beat.phase = Phase::kWait;
  beat.steps = newest_version().value;
  if (pacer_ != nullptr) beat.pacer = *pacer_;
  beat.work = work();
  for (const auto& [shard, load] : loads_) beat.shards.push_back(load);
  if (beat.pacer) {
    beat.examples = beat.pacer->examples;
    beat.loss = beat.pacer->loss;
  }
}

Step HeldJob::newest_version() const {
  Step newest;
  for (const auto& [shard, version] : versions_) newest = std::max(newest, version);
  return newest;
}

std::string HeldJob::text() const {
  const std::size_t missing = threads_.size() - std::min(threads_.size(), ready_.size());
  const std::string text = "job " + job_->config.job.name + ", step " + std::to_string(newest_version().value);
  if (is_dropping_) return text + ", closing";
  if (!is_created_)
    return text + (job_->restore_path.empty() ? ", making " : ", restoring ") + std::to_string(missing) + " of " +
           std::to_string(threads_.size()) + " shards";
  return text + (is_writing() ? ", saving a checkpoint" : "");
}

}  // namespace disttrain::shards
