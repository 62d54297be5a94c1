#include "tests/sim/laws.h"

#include <algorithm>
#include <cmath>

#include "common/checkpoint/job_folder.h"
#include "common/interval_set.h"
#include "tests/sim/shard_twin.h"

namespace disttrain::sim {

namespace {

constexpr int kLongestPause = 200;  // heartbeat timeouts

std::string name_of(const RunId& run) {
  return "job " + std::to_string(run.first.value) + ", generation " + std::to_string(run.second.value);
}

}  // namespace

void Laws::worker_lost(JobId job, const std::string& task) {
  const RunId run{job, generations_[job].generation};
  const auto lost = parse_task_id(task);
  if (!lost) return violated("the chief reports a lost worker whose name is no task: " + task);
  const auto is_it = [&lost](const auto& entry) { return entry.first.task == *lost; };
  auto& clocks = clocks_[run];
  const auto known = std::find_if(clocks.begin(), clocks.end(), is_it);
  if (known == clocks.end()) {
    lost_any_[run].insert(*lost);
    return;
  }
  lost_[run].insert(known->first);
  clocks.erase(known);
}

void Laws::begins(const chiefd::JournalState& durable) {
  for (const std::string& name : accepted_) {
    const auto is_it = [&name](const auto& job) { return job.second.submitted.name == name; };
    if (std::none_of(durable.jobs.begin(), durable.jobs.end(), is_it))
      violated("I28: a client was told that job " + name + " is accepted, but the next chief doesn't know the job");
  }
}

void Laws::ends(const RunId& run, ShardId shard, const ShardTwin& twin) {
  const auto entry = twins_.find({run, shard});
  if (entry != twins_.end() && entry->second == &twin) twins_.erase(entry);
}

void Laws::generation_begins(const chiefd::GenerationRecord& record) {
  chiefd::GenerationRecord& last = generations_[record.job];
  if (record.generation <= last.generation)
    violated("I1: job " + std::to_string(record.job.value) + " begins generation " +
             std::to_string(record.generation.value) + " after generation " + std::to_string(last.generation.value));
  last = record;
}

// ---- the chief's word

void Laws::welcomes(Term term, const chiefd::JournalState& durable) {
  if (durable.term < term) violated("I1: the chief sends term " + std::to_string(term.value) + " before it is durable");
}

void Laws::sends(const chiefd::Send& send, const chiefd::JournalState& durable) {
  const auto check = [&](JobId id, Generation generation) -> const chiefd::JournaledJob* {
    const auto job = durable.jobs.find(id);
    if (job != durable.jobs.end() && job->second.generation.generation >= generation) return &job->second;
    violated("I1: the chief sends generation " + std::to_string(generation.value) + " before it is durable");
    return nullptr;
  };
  if (const auto* create = std::get_if<CreateShards>(&send.message)) {
    check(create->job, create->generation);
  } else if (const auto* open = std::get_if<OpenJob>(&send.message)) {
    check(open->job, open->generation);
  } else if (const auto* set = std::get_if<SetRoster>(&send.message)) {
    const chiefd::JournaledJob* job = check(set->job, set->generation);
    if (job != nullptr && job->generation.generation == set->generation && job->roster.version < set->roster.version)
      violated("I1: the chief sends the pacer roster " + std::to_string(set->roster.version.value) +
               " before it is durable");
  } else if (const auto* grant = std::get_if<LeaseGrant>(&send.message)) {
    if (!grant->lease || grant->lease->ranks != 0) return;
    const chiefd::JournaledJob* job = check(grant->job, grant->generation);
    if (job != nullptr && job->generation.generation == grant->generation && job->grants.count(grant->lease->id) == 0)
      violated("I12: lease " + std::to_string(grant->lease->id.value) + " is sent before it is durable");
    lends({grant->job, grant->generation}, send.task, *grant->lease);
  } else if (const auto* abandoned = std::get_if<AbandonCheckpoint>(&send.message)) {
    std::uint64_t& newest = abandoned_[{abandoned->job, abandoned->generation}];
    newest = std::max(newest, abandoned->attempt);
  }
}

// The caller, sends(), leaves out the leases of sync, so all leases here are of async or ssp.
void Laws::lends(const RunId& run, TaskId to, const Lease& lease) {
  const auto grants = loans_[run].find(lease.id);
  if (grants != loans_[run].end()) {
    if (grants->second.borrower.task != to)
      violated("I12: lease " + std::to_string(lease.id.value) + " has two owners");
    return;
  }
  IntervalSet wanted(lease.positions);
  for (const auto& [id, loan] : loans_[run]) {
    if (loan.epoch != lease.epoch) continue;
    const bool overlaps = std::any_of(loan.positions.begin(), loan.positions.end(),
                                      [&wanted](const Interval& i) { return !wanted.intersection(i).empty(); });
    if (!overlaps) continue;
    // A loan says which task has borrowed the records, but not which process of this task. So it is enough if all
    // shards have fenced some process of this task.
    const std::size_t shards = generations_[run.first].owners.size();
    const auto& fenced = fenced_[run];
    const bool is_fenced = std::any_of(fenced.begin(), fenced.end(), [&, borrower = loan.borrower](const auto& entry) {
      return entry.first.task == borrower.task && entry.second.size() == shards;
    });
    if (!is_fenced)
      return violated("I11: records of lease " + std::to_string(id.value) + " of " + to_string(loan.borrower.task) +
                      " are lent again before all shards have fenced this worker");
  }
  loans_[run][lease.id] = Loan{Member{to, {}}, lease.epoch, lease.positions};
}

// ---- shards

void Laws::owns(const RunId& run, ShardId shard, const Member& owner) {
  const auto [entry, is_new] = owners_.emplace(std::pair(run, shard), owner);
  if (!is_new && entry->second != owner)
    violated("I2: " + name_of(run) + ": two processes own shard " + std::to_string(shard.value));
}

void Laws::applies(const RunId& run, ShardId shard, const Member& owner) {
  const Generation newest = generations_[run.first].generation;
  if (newest == run.second) return;
  const auto successor = owners_.find({RunId{run.first, newest}, shard});
  if (successor != owners_.end() && successor->second != owner) ++applied_by_former_owners_;
}

void Laws::begins_at(const RunId& run, ShardId shard, Step step) {
  const chiefd::GenerationRecord& record = generations_[run.first];
  if (record.generation == run.second && record.restore_step != step)
    violated("I8: " + name_of(run) + ": shard " + std::to_string(shard.value) + " begins at step " +
             std::to_string(step.value) + "; the rollback is to step " + std::to_string(record.restore_step.value));
}

void Laws::decided(const RunId& run, Step step, Decision decision) {
  const auto [entry, is_new] = decisions_[run].emplace(step, std::move(decision));
  if (!is_new) violated("I7: " + name_of(run) + ": step " + std::to_string(step.value) + " was decided twice");
}

void Laws::norm_is(const RunId& run, const ClipConfig& clip, std::uint32_t shards, Step step, ShardId shard,
                   double norm2) {
  auto& norms = norms_[{run, step}];
  norms[shard] = norm2;
  if (norms.size() < shards) return;
  double sum = 0.0;
  for (const auto& [of_shard, part] : norms) sum += part;
  norms_.erase({run, step});
  const double norm = std::sqrt(sum);
  const double expected = norm > clip.value ? clip.value / norm : 1.0;
  const double said = decision_of(run, step)->scale;
  if (said != expected)
    violated("I7: " + name_of(run) + ": step " + std::to_string(step.value) + " is scaled by " + std::to_string(said) +
             ", but by the norm over all shards the scale is " + std::to_string(expected));
}

const Decision* Laws::decision_of(const RunId& run, Step step) const {
  const auto decisions = decisions_.find(run);
  if (decisions == decisions_.end()) return nullptr;
  const auto decision = decisions->second.find(step);
  return decision == decisions->second.end() ? nullptr : &decision->second;
}

void Laws::cut(const RunId& run, std::uint64_t attempt, ShardId shard, CutTaken cut) {
  auto& [newest, shards] = cuts_[run];
  if (attempt < newest) return;  // a shard that was paused may cut for an attempt that was abandoned meanwhile
  if (attempt > newest) shards.clear();
  newest = attempt;
  if (shard.value == 0) cut.batches = batches_[run];
  shards[shard] = std::move(cut);
}

void Laws::orders_begin(const RunId& run, const std::string& restore_path) {
  const auto saved = batches_of_.find(restore_path);
  batches_[run] = restore_path.empty()         ? Batches(std::in_place)
                  : saved == batches_of_.end() ? Batches()
                                               : saved->second;
}

void Laws::batch_applied(const RunId& run, TaskId worker, std::uint64_t batches) {
  if (!batches_[run]) return;
  std::uint64_t& known = (*batches_[run])[worker];
  if (batches != known + 1)
    violated("I35: " + to_string(worker) + " pushes batch " + std::to_string(batches) + " of its order after batch " +
             std::to_string(known));
  known = batches;
}

void Laws::goes_on(const RunId& run, TaskId worker, std::uint64_t batches) {
  if (!batches_[run]) return;
  const std::uint64_t known = (*batches_[run])[worker];
  if (batches != known)
    violated("I35: " + to_string(worker) + " goes on after " + std::to_string(batches) +
             " batches of its order, but the parameters have " + std::to_string(known));
}

bool Laws::is_abandoned(const RunId& run, std::uint64_t attempt) const {
  const auto newest = abandoned_.find(run);
  return newest != abandoned_.end() && attempt <= newest->second;
}

// ---- workers

void Laws::computed_from(const std::string& who, const std::map<BucketId, Step>& versions, std::size_t buckets) {
  const auto differs = [&versions](const auto& entry) { return entry.second != versions.begin()->second; };
  if (versions.size() != buckets) violated("I10: " + who + " computes before all parameters have arrived");
  if (std::any_of(versions.begin(), versions.end(), differs))
    violated("I10: " + who + " computes a synchronous step from parameters of several versions");
}

// Returns null if the laws don't know the values with which the generation began.
const Laws::ByWord* Laws::begun_with(const RunId& run) const {
  const auto record = generations_.find(run.first);
  if (record == generations_.end() || record->second.generation != run.second) return nullptr;
  const auto saved = values_of_.find(record->second.restore_path);
  return saved == values_of_.end() ? nullptr : &saved->second;
}

// The value of a record is an integer. A frame carries the sum of its records' values. For each shard and bucket, the
// frames of a worker must have the same sum as the records that the pacer's ledger names for this worker. Only the last
// push of a lost worker may have reached some shards and not others. For example, a worker pushes records whose values
// add up to 5, then records whose values add up to 3, and dies during the second push:
// 1. If the pacer has both pushes (visited 8, visited_last 3), another shard may have only the first (5 = 8 - 3).
// 2. If the pacer has only the first push (visited 5), another shard may have both (8, of which 3 are in `newest`).
// 3. Any other sum proves that a frame was lost or applied twice.
void Laws::are_whole(const RunId& run, const std::map<ShardId, const TakenByWorker*>& shards, const std::string& when) {
  static const Taken kNothing;
  std::set<Member> workers;
  for (const auto& [shard, taken] : shards)
    for (const auto& [worker, sums] : *taken) workers.insert(worker);
  const auto of = [](const TakenByWorker& taken, const Member& worker) -> const Taken& {
    const auto entry = taken.find(worker);
    return entry == taken.end() ? kNothing : entry->second;
  };
  const auto at = [](const std::map<BucketId, double>& sums, BucketId bucket) {
    const auto sum = sums.find(bucket);
    return sum == sums.end() ? 0.0 : sum->second;
  };
  for (const Member& worker : workers) {
    const Taken& pacer = of(*shards.at(ShardId(0)), worker);
    const bool is_lost =
        fenced_[run].count(worker) != 0 || lost_[run].count(worker) != 0 || lost_any_[run].count(worker.task) != 0;
    for (const auto& [shard, taken] : shards) {
      std::map<BucketId, double> sums = of(*taken, worker).sums;
      if (sums.empty()) sums[BucketId(0)] = 0.0;  // the worker sent no frame to this shard
      for (const auto& [bucket, sum] : sums) {
        const bool is_partial =
            sum - at(of(*taken, worker).newest, bucket) == pacer.visited || sum == pacer.visited - pacer.visited_last;
        if (sum == pacer.visited || (is_lost && is_partial)) continue;
        return violated("I5, I6, I11: " + when + ": the frames of " + to_string(worker.task) + " for bucket " +
                        std::to_string(bucket.value) + " at shard " + std::to_string(shard.value) + " add up to " +
                        std::to_string(sum) + ", but its records in the ledger add up to " +
                        std::to_string(pacer.visited));
      }
    }
  }
}

template <typename T>
T Laws::begun_value(const ByWord* begun, const JobConfig& job, std::uint32_t variable, std::uint64_t word) const {
  std::array<float, sizeof(T) / sizeof(float)> words{};
  if (begun == nullptr) return first_value<T>(job, jobs_.model, variable, word / words.size());
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = begun->at({variable, word + i}).front();
  return std::bit_cast<T>(words);
}

template <typename T>
void Laws::is_final(const JobConfig& job, const Layout& layout, const Bucket& bucket, const Slice& slice,
                    const ByWord* begun, double sum, std::span<const float> flat) {
  if (layout.model.variables[slice.variable].kind == VariableKind::kState) return;  // ShardTwin checks it
  const std::uint64_t begin = bucket.flat_begin + slice.bucket_begin;
  const std::span<const T> values = values_in<T>(flat.subspan(begin, slice.words));
  for (std::size_t e = 0; e < values.size(); ++e) {
    const std::uint64_t word = e * sizeof(T) / sizeof(float);
    const T first = begun_value<T>(begun, job, slice.variable, slice.variable_begin + word);
    const T expected = first - static_cast<T>(sum) * coefficient<T>(begin + word);
    if (values[e] != expected)
      return violated("I5, I11: the element at word " + std::to_string(begin + word) + " of the final parameters is " +
                      std::to_string(values[e]) + ", but by its first value and all frames it must be " +
                      std::to_string(expected));
  }
}

void Laws::final_parameters(const RunId& run, const JobConfig& job, const Layout& layout,
                            const std::vector<float>& flat) {
  if (job.train.mode == Mode::kSync || job.data.sharding != Sharding::kLease) return;
  std::map<ShardId, TakenByWorker> all;
  for (std::uint32_t s = 0; s < layout.shards; ++s) {
    const auto twin = twins_.find({run, ShardId(s)});
    if (twin == twins_.end()) return;  // the shard doesn't exist now, because another generation will begin
    all[ShardId(s)] = twin->second->taken();
  }
  std::map<ShardId, const TakenByWorker*> shards;
  for (const auto& [shard, taken] : all) shards[shard] = &taken;
  are_whole(run, shards, "at the end");
  const ByWord* const begun = begun_with(run);
  const chiefd::GenerationRecord& record = generations_[run.first];
  const bool is_known = record.generation == run.second && (begun != nullptr || record.restore_path.empty());
  if (!is_exact(job, jobs_) || !is_known) return;
  if (job.evaluate.average > 0.0) return;  // the worker evaluates the averages; ShardTwin checks them
  for (std::uint32_t id = 0; id < layout.buckets.size(); ++id) {
    double sum = 0.0;
    for (const auto& [worker, taken] : all[layout.buckets[id].shard]) {
      const auto own = taken.sums.find(BucketId(id));
      sum += own == taken.sums.end() ? 0.0 : own->second;
    }
    with_type(dtype_of(layout, BucketId(id)), [&]<typename T>(T) {
      for (const Slice& slice : slices_of(layout, BucketId(id)))
        is_final<T>(job, layout, layout.buckets[id], slice, begun, sum, flat);
    });
  }
}

void Laws::computes(const RunId& run, const JobConfig& job, const Member& worker, std::uint64_t clock) {
  // With leases, a worker that waits for a lease doesn't hold the others back. For such jobs, ShardTwin checks the
  // bound.
  if (job.train.mode != Mode::kSsp || job.data.sharding == Sharding::kLease) return;
  if (lost_[run].count(worker) != 0 || lost_any_[run].count(worker.task) != 0) return;
  auto& clocks = clocks_[run];
  const auto less = [](const auto& a, const auto& b) { return a.second < b.second; };
  // A worker that joins later begins at the clock of the slowest worker.
  if (clocks.count(worker) == 0 && !clocks.empty())
    clocks[worker] = std::min_element(clocks.begin(), clocks.end(), less)->second;
  clocks[worker] = std::max(clocks[worker], clock);
  const std::uint64_t slowest = std::min_element(clocks.begin(), clocks.end(), less)->second;
  // The largest allowed gap, for example with staleness 1 and without pipelining:
  // 1. The slowest worker has pushed step 5 and hasn't begun to compute step 6, so its clock here is 5.
  // 2. The fastest worker has pushed step 6. It gets an answer, because 6 <= 5 + 1, and computes step 7.
  // So the largest gap is 2 = staleness + 1.
  const std::uint64_t bound = job.train.staleness + 1 + job.train.pipeline;
  if (clock > slowest + bound)
    violated("I9: " + to_string(worker.task) + " computes step " + std::to_string(clock) +
             " while the slowest worker is at step " + std::to_string(slowest) + ", staleness " +
             std::to_string(job.train.staleness));
}

// ---- jobs

void Laws::restarts(const JobConfig& job, const chiefd::GenerationRecord& record, Term term) {
  const std::uint64_t begun = ++begun_[record.job];
  if (begun == 1) begins_anew();
  const std::uint64_t uncounted = link_rollbacks_ + std::min(leavers_, leaver_rollbacks_) + spared_rollbacks_;
  if (begun > 1 + job.job.max_restarts + damages_ + term.value + uncounted)
    violated("L2: generation " + std::to_string(record.generation.value) + " is number " + std::to_string(begun) +
             " of a job with job.max_restarts " + std::to_string(job.job.max_restarts));
}

void Laws::starts_without_a_worker() {
  ++spared_rollbacks_;
  if (++spared_in_a_row_ > jobs_.cluster.workers.size())
    violated("L2: the job has started without a worker " + std::to_string(spared_in_a_row_) +
             " times in a row, but there are " + std::to_string(jobs_.cluster.workers.size()) + " workers");
}

void Laws::isnt_paused() {
  longest_timeout_ = Duration();
  paused_since_.reset();
}

void Laws::is_paused(Instant now, Duration timeout, std::uint64_t crashes, const JobConfig& job,
                     const chiefd::JobStatus& status) {
  if (!paused_since_) {
    paused_since_ = counted_since_ = now;
    crashes_before_ = crashes;
  }
  if (status.reason.empty()) violated("L4: the job is paused without a reason");
  // If the heartbeat timeout changes, a deadline that was set earlier keeps its length. So the longest timeout during
  // the pause counts.
  longest_timeout_ = std::max(longest_timeout_, timeout);
  // After a crash, a task reads everything again.
  const auto readings = static_cast<std::int64_t>(4 + crashes - crashes_before_);
  const Duration work = readings * static_cast<std::int64_t>(jobs_.slow_pieces) * jobs_.slow_piece;
  const Duration limits = job.job.ps_timeout + job.job.workers_timeout;
  const Duration bound = kLongestPause * longest_timeout_ + work + limits;
  // A shorter wait doesn't excuse a job that waits and fails in turns.
  const bool is_unlimited =
      std::any_of(status.absences.begin(), status.absences.end(),
                  [&](const chiefd::Absence& absence) { return !absence.limit && now - absence.since > timeout; });
  const std::string how_long = "L4: the job has been paused for " + std::to_string(kLongestPause) +
                               " heartbeat timeouts and the limits of its file";
  if (is_unlimited) {
    counted_since_ = now;  // when the tasks are back, the job has the usual time to go on
    // A pause may also consist of losses that follow each other.
    const Instant waits_since = std::max(*paused_since_, loss_counted_);
    if (now - waits_since > bound && (!wait_reported_ || *wait_reported_ < *paused_since_))
      violated(how_long + ", and the chief hasn't reported this: " + status.reason);
  } else if (now - counted_since_ > bound) {
    violated(how_long + ": " + status.reason);
  }
}

void Laws::finished(const JobConfig& job, std::uint64_t examples) {
  if (job.data.sharding != Sharding::kLease || job.train.steps != 0) return;
  const std::uint64_t expected = job.train.epochs * jobs_.records;
  if (examples != expected)
    violated("I11: the finished job has visited " + std::to_string(examples) + " examples, but its epochs have " +
             std::to_string(expected));
}

}  // namespace disttrain::sim
