// The start of a job: gather, describe, place, create, open; from there on also each of its later generations. See
// job.h.
#include <algorithm>
#include <utility>

#include "chiefd/core/job.h"
#include "chiefd/core/placement.h"
#include "common/mutant.h"

namespace disttrain::chiefd {
namespace {

std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) {
  return (a + b - 1) / b;
}

// The smaller of two limits where 0 is none.
std::uint64_t smaller_limit(std::uint64_t a, std::uint64_t b) {
  if (a == 0 || b == 0) return std::max(a, b);
  return std::min(a, b);
}

// splitmix64 (Steele, Lea, Flood 2014): spreads a seed and a job's number over 64 bits.
std::uint64_t mix(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::string milliseconds(Duration duration) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count()) + " ms";
}

}  // namespace

void Job::begin(Turn& turn) {
  has_begun_ = true;
  stage_ = Stage::kGather;
  deadline_ = gather_until_ = turn.now + setup_.timeouts.setup;
  set_state(turn, JobState::kStarting, "gathers its tasks");
  gather(turn);
}

// Waits for all tasks of the cluster file, but for not much longer than every ps, every rank and the least number of
// workers need. The first time that number is also what the submitter starts itself: a job that began with those of
// them that are quickest would be another one each time.
void Job::gather(Turn& turn) {
  std::map<TaskId, Member> there;
  for (const auto& [id, task] : turn.tasks.all())
    if (id.role == Role::kWorker && task.takes_work()) there.emplace(id, task.member);
  // Those that have ranks are the ones that it trains with, in that order.
  std::vector<Member> workers;
  for (const TaskId rank : ranks_)
    if (there.count(rank) != 0) workers.push_back(there.at(rank));
  const bool has_all_ranks = workers.size() == ranks_.size();
  const std::size_t awaited = ranks_.empty() ? setup_.submission.awaited_workers : 0;
  const std::size_t least = std::max(least_workers(), awaited);
  if (ranks_.empty())
    for (const auto& [id, member] : there) workers.push_back(member);
  const std::vector<Awaited> missing = missing_to_begin(turn.tasks);
  if (missing.empty()) return describe(turn, workers);
  reason_ = "waiting for ";
  if (missing.front().task)
    reason_ += std::to_string(missing.size()) + " of " + std::to_string(turn.tasks.all().size()) + " tasks: ";
  reason_ += to_string(missing);
  const bool has_all_ps = std::none_of(missing.begin(), missing.end(),
                                       [](const Awaited& one) { return one.task && one.task->role == Role::kPs; });
  if (!has_all_ps || !has_all_ranks || workers.size() < least) {
    complete_enough_at_.reset();
    return;
  }
  if (!complete_enough_at_) complete_enough_at_ = turn.now;
  if (turn.now - *complete_enough_at_ < 2 * setup_.timeouts.silent) return;
  warn("began without " + to_string(missing));
  describe(turn, workers);
}

void Job::describe(Turn& turn, const std::vector<Member>& workers) {
  stage_ = Stage::kDescribe;
  roster_ = Roster{RosterVersion(1), workers};
  reason_ = to_string(workers.front().task) + " reads the data and builds the model";
  await(turn, {workers.front()}, turn.now + setup_.timeouts.setup);
  send(turn, workers.front().task, DescribeJob{id(), resolved_config()});
}

// Nothing is held anywhere yet: if one of those who are counted on is gone, begin again with who is there.
void Job::on_finding_while_describing(Turn& turn, const Finding& finding) {
  const Member& member = finding.member;
  const bool is_good = finding.what == Finding::What::kJoined || finding.what == Finding::What::kReturned;
  if (is_good || (member.task.role == Role::kWorker && !is_in_roster(member))) return;
  // A worker that dies of the job's data would die of it again, and again.
  const bool may_be_the_data =
      finding.what == Finding::What::kLost && !finding.was_told_to_end && awaited_.count(member) != 0;
  const Cause cause{member.task, finding.why};
  const std::size_t times = may_be_the_data ? count_loss(turn, kLostAtStart, cause) : 0;
  if (times > config().job.max_restarts)
    return fail(turn, too_many_losses(ErrorCode::kUnavailable, cause, times), member.task);
  if (turn.now >= gather_until_) return fail(turn, Error{ErrorCode::kUnavailable, finding.why}, member.task);
  awaited_.clear();
  stage_ = Stage::kGather;
  deadline_ = gather_until_;
  gather(turn);
}

void Job::on_described(Turn& turn, const Member& from, const JobDescribed& described) {
  if (stage_ != Stage::kDescribe) {
    if (invited_.erase(from) == 0 || !described_) return;
    if (!(described.model == described_->model) || described.train_records != described_->train_records)
      return tell(turn, "worker_refused", 2,
                  to_string(from.task) + " can't take part: it finds " + std::to_string(described.train_records) +
                      " training records, the others found " + std::to_string(described_->train_records) +
                      "; expected the same files and the same version on every host",
                  from.task);
    prepared_.insert(from);
    note_reach(turn, from, described.unreachable);
    if (stage_ == Stage::kRegather) regather(turn);
    return join_prepared(turn);
  }
  if (!answered(from)) return;
  if (Status status = check_described(described); !status) return fail(turn, status.error(), std::nullopt);
  described_ = described;
  prepared_.insert(from);
  turn.persist(DescribedRecord{described});
  draw_numbers(turn);
  workers_ = roster_.members;
  if (takes_checkpoints()) return ask_folder(turn);
  find_init(turn);
}

// The secret comes from the chief's seed, which is random and on no disk; the mark from what anybody may know.
void Job::draw_numbers(const Turn& turn) {
  const std::uint64_t which = std::uint64_t{id().value} << 32 ^ turn.term.value << 16 ^ ++numbers_drawn_;
  token_ = std::max<std::uint64_t>(mix(mix(setup_.seed) ^ which), 1);
  mark_ = std::max<std::uint64_t>(mix(mix(setup_.journal.value) ^ which), 1);
}

void Job::ask_folder(Turn& turn) {
  stage_ = Stage::kFolder;
  reason_ = "the chief looks for checkpoints in " + config().checkpoint.directory;
  deadline_ = turn.now + setup_.timeouts.setup;
  ask_newest(turn);
}

// Named once, for all shards and all generations.
void Job::find_init(Turn& turn) {
  if (restore_ || !has_init() || !init_path_.empty()) return place_model(turn);
  stage_ = Stage::kInit;
  reason_ = "the chief looks for the parameters to begin with in " + config().checkpoint.init_from;
  deadline_ = turn.now + setup_.timeouts.setup;
  stage_ticket_ = turn.next_ticket();
  folder_work(turn, stage_ticket_, FindInit{config().checkpoint.init_from});
}

void Job::on_init(Turn& turn, const Result<FolderAnswer>& answer) {
  deadline_.reset();
  if (!answer) {
    Error error = answer.error();
    error.message = "checkpoint.init_from: " + error.message;
    return fail(turn, std::move(error), std::nullopt);
  }
  init_path_ = answer->path;
  place_model(turn);
}

// The ledger of a checkpoint is of no use with other records.
Status Job::check_restore() const {
  if (!restore_ || restore_->records == 0 || restore_->records == described_->train_records ||
      config().data.sharding != Sharding::kLease)
    return {};
  return disttrain::fail(ErrorCode::kConfig,
                         restore_->path + " was made with " + std::to_string(restore_->records) +
                             " training records; the data now has " + std::to_string(described_->train_records) +
                             ": give the job the data that it had, or another name and this as checkpoint.init_from");
}

Status Job::check_described(const JobDescribed& described) const {
  if (described.train_records == 0)
    return disttrain::fail(ErrorCode::kData, "the data has no records: check [data] files and records");
  if (!config().evaluate.files.empty() && described.evaluation_records == 0)
    return disttrain::fail(ErrorCode::kData, "[evaluate] has no records: check its files");
  return {};
}

MemoryFit Job::memory_fit(const Tasks& tasks) const {
  std::vector<TaskId> owners;
  std::map<TaskId, std::uint64_t> memory;
  for (const Owner& owner : owners_) {
    owners.push_back(owner.ps.task);
    if (const Task* task = tasks.find(owner.ps.task)) memory[owner.ps.task] = task->hello.memory_bytes;
  }
  return MemoryFit(layout_, owners, config(), setup_.credits, memory);
}

// Memory is made for workers that may still come, as far as there is any.
Status Job::make_places(const Tasks& tasks, std::size_t least) {
  const auto fewest = static_cast<std::uint32_t>(least);
  const MemoryFit fit = memory_fit(tasks);
  if (const std::string problem = fit.why_not(fewest); !problem.empty())
    return disttrain::fail(ErrorCode::kConfig, problem);
  const auto roster = std::max(fewest, static_cast<std::uint32_t>(roster_.members.size()));
  places_ = fit.most_workers(wanted_places(roster, setup_.listed_workers, setup_.takes_unlisted));
  return {};
}

Status Job::place_on_all(const Tasks& tasks, std::size_t least) {
  std::vector<Offer> offers;
  std::uint64_t offered = 0;
  for (const auto& [id, task] : tasks.all()) {
    if (id.role != Role::kPs || !task.takes_work() || is_avoided(tasks, id)) continue;
    const std::uint32_t threads = std::max(task.hello.shards, 1u);
    offers.push_back(Offer{id, threads});
    offered += threads;
  }
  if (offered == 0) return disttrain::fail(ErrorCode::kUnavailable, "no ps is there that the others reach");
  Result<Layout> layout =
      place_on(described_->model, config().job.placement, config().job.shards, static_cast<std::uint32_t>(offered));
  if (!layout) return tl::unexpected(layout.error());
  layout_ = std::move(*layout);
  owners_.clear();
  for (TaskId ps : assign_owners(offers, layout_.shards)) {
    const Task& task = *tasks.find(ps);
    owners_.push_back(Owner{task.member, task.hello.address});
  }
  return make_places(tasks, least);
}

void Job::place_model(Turn& turn) {
  // A ps that was lost meanwhile is waited for as at the beginning.
  const auto& tasks = turn.tasks.all();
  if (turn.now < gather_until_ && std::any_of(tasks.begin(), tasks.end(), [](const auto& entry) {
        return entry.first.role == Role::kPs && entry.second.is_listed && !entry.second.takes_work();
      })) {
    stage_ = Stage::kGather;
    deadline_ = gather_until_;
    return gather(turn);
  }
  if (Status status = check_restore(); !status) return fail(turn, status.error(), std::nullopt);
  if (Status status = place_on_all(turn.tasks, roster_.members.size()); !status)
    return fail(turn, status.error(), std::nullopt);
  if (waits_for_lost() && ranks_.empty())
    for (const Member& worker : roster_.members) ranks_.push_back(worker.task);
  begin_generation(turn);
}

// Owners, layout and roster are decided.
void Job::begin_generation(Turn& turn) {
  was_begun_ = generation_.value != 0;
  const bool keeps_number = was_begun_ && DISTTRAIN_MUTANT(kGenerationNotRaised);
  generation_ = keeps_number ? generation_ : std::max(generation_, folder_generation_).next();
  roster_.version = RosterVersion(1);
  workers_ = roster_.members;
  lost_.clear();
  unfinished_.clear();
  joining_.clear();
  may_lend_ = false;
  pacer_report_ = restore_ ? restore_->pacer : PacerReport();
  examples_reported_ = pacer_report_.examples;
  if (evaluation_ && evaluation_->step > pacer_report_.global_step) evaluation_.reset();  // of what is thrown away
  stage_ = Stage::kGeneration;
  reason_ = "waits for the chief's own disk";
  deadline_ = turn.now + setup_.timeouts.setup;
  stage_ticket_ =
      turn.persist(GenerationRecord{id(), generation_, mark_, owners_, roster_, restore_ ? restore_->path : "",
                                    restore_ ? restore_->step : Step(), recoveries_, before_, init_path_, places_});
  if (DISTTRAIN_MUTANT(kGenerationNotDurable)) create_shards(turn);
}

void Job::create_shards(Turn& turn) {
  stage_ = Stage::kCreate;
  create_began_ = turn.now;
  reason_ = "the ps tasks create " + std::to_string(layout_.shards) + (layout_.shards == 1 ? " shard" : " shards") +
            (restore_ || !init_path_.empty() ? " from " + (restore_ ? restore_->path : init_path_) : "");
  await(turn, holders(), turn.now + setup_.timeouts.setup);
  for (const Member& ps : holders()) ask_to_create(turn, ps);
}

void Job::ask_to_create(Turn& turn, const Member& ps) {
  send(turn, ps.task,
       CreateShards{.job = id(),
                    .generation = generation_,
                    .token = token_,
                    .config = resolved_config(),
                    .layout = layout_,
                    .owners = owners_,
                    .roster = roster_,
                    .warmup_steps = setup_.submission.warmup_steps,
                    .train_records = described_->train_records,
                    .places = places_,
                    .checkpoint_folder = takes_checkpoints() ? config().checkpoint.directory + "/" + name() : "",
                    .checkpoint_mark = folder_mark_,
                    .restore_path = restore_ ? restore_->path : "",
                    .init_path = restore_ ? "" : init_path_});
}

void Job::open(Turn& turn) {
  if (restore_) figures_.restore.observe(to_seconds(turn.now - create_began_));
  stage_ = Stage::kOpen;
  reason_ = "the workers open the job";
  evaluator_ = roster_.members.front();
  await(turn, roster_.members, turn.now + setup_.timeouts.setup);
  for (const Member& worker : roster_.members) ask_to_open(turn, worker);
}

// Of its own steps, how many are behind it: who goes through the whole set goes on where it, or its predecessor, was.
Step Job::clock_of(const Member& worker) const {
  const bool has_own_order = config().data.sharding == Sharding::kNone;
  if (has_own_order && config().train.mode == Mode::kAsync) {
    if (stage_ == Stage::kTrain) {
      const auto lost = lost_clocks_.find(worker.task);
      return lost == lost_clocks_.end() ? Step() : lost->second;
    }
    if (!restore_) return Step();
    const auto clock = restore_->worker_clocks.find(worker.task);
    return clock == restore_->worker_clocks.end() ? Step() : clock->second;
  }
  if (config().train.mode == Mode::kSsp)
    return std::max(pacer_report_.slowest_clock, restore_ ? restore_->step : Step());
  return pacer_report_.global_step;
}

OpenJob Job::order_to_open(const Member& worker) const {
  return OpenJob{.job = id(),
                 .generation = generation_,
                 .token = token_,
                 .config = resolved_config(),
                 .layout = layout_,
                 .owners = owners_,
                 .roster = roster_,
                 .train_records = described_->train_records,
                 .evaluates = evaluator_ == worker,
                 .clock = clock_of(worker)};
}

void Job::ask_to_open(Turn& turn, const Member& worker) {
  send(turn, worker.task, order_to_open(worker));
}

void Job::start_training(Turn& turn) {
  stage_ = Stage::kTrain;
  links_.forget_peers();  // its shards have met
  opened_ = true;
  deadline_.reset();
  unfinished_ = std::set<Member>(roster_.members.begin(), roster_.members.end());
  progress_at_ = turn.now;
  lending_ = Lending(config(), described_->train_records, roster_, pacer_report_, LeaseId(turn.term.value << 32));
  may_lend_ = true;
  early_requests_.clear();
  if (!newest_at_.time_since_epoch().count()) newest_at_ = turn.now;
  set_next_due(pacer_report_.global_step);
  if (restore_ && !recovery_)
    tell(turn, "restored", 1,
         "begins at step " + std::to_string(restore_->step.value) + " of the checkpoint " + restore_->path);
  if (!restore_ && !recovery_ && !init_path_.empty())
    tell(turn, "warm_start", 1, "begins with the parameters of " + init_path_);
  if (const std::optional<Recovery> recovery = std::exchange(recovery_, std::nullopt)) {
    const std::uint64_t from = restore_ ? restore_->step.value : 0;
    const std::uint64_t lost = recovery->step.value > from ? recovery->step.value - from : 0;
    steps_lost_ += lost;
    tell(turn, kRolledBack, 2,
         "generation " + std::to_string(generation_.value) + " goes on at step " + std::to_string(from) + " (" +
             (restore_ ? restore_->path : "initial values") + "), " +
             (recovery->is_step_known ? std::to_string(lost) + " steps are lost; "
                                      : "the steps since then are lost, " +
                                            (lost > 0 ? "at least " + std::to_string(lost) : "how many isn't known") +
                                            ": the chief was away; ") +
             milliseconds(turn.now - recovery->began) + " after: " + to_string(recovery->cause),
         recovery->cause.task, recovery->cause.reason);
  }
  // After what was told: a chief that finds it has no recovery to end.
  turn.persist(TrainingRecord{id(), generation_});
  set_state(turn, JobState::kRunning, training_reason(turn.now));
  send_to_workers(turn, StartJob{id(), generation_});
  lend(turn);
  invite_all(turn);
}

// What the pacer counts to: the steps of the configuration; and in sync over whole sets those that the epochs make.
std::uint64_t Job::effective_steps() const {
  const TrainSection& train = config().train;
  if (train.mode != Mode::kSync || config().data.sharding != Sharding::kNone || !described_) return train.steps;
  return smaller_limit(train.steps, train.epochs * ceil_div(described_->train_records, train.batch_size));
}

// What every task goes by.
SharedJobConfig Job::resolved_config() const {
  auto resolved = std::make_shared<JobConfig>(config());
  resolved->train.steps = effective_steps();
  return resolved;
}

std::uint64_t Job::steps_target() const {
  const TrainSection& train = config().train;
  if (!described_) return train.steps;
  const std::uint64_t batches = ceil_div(described_->train_records, std::max(train.batch_size, 1u));
  if (config().data.sharding == Sharding::kLease) {
    // With backup workers a step visits what `aggregate` of them bring.
    const std::uint64_t workers =
        train.aggregate != 0 ? train.aggregate : std::max<std::size_t>(roster_.members.size(), 1);
    const std::uint64_t ranks = train.mode == Mode::kSync ? workers : 1;
    // What was visited so far stands, with however many workers; what is left is for those that are there now.
    const std::uint64_t records = described_->train_records;
    const std::uint64_t of_an_epoch = ceil_div(records, train.batch_size * ranks);
    const std::uint64_t touched = pacer_report_.complete_epochs + pacer_report_.ledger.size();
    std::uint64_t left = touched < train.epochs ? (train.epochs - touched) * of_an_epoch : 0;
    for (const EpochLedger& epoch : pacer_report_.ledger) {
      std::uint64_t visited = 0;
      for (const Interval& interval : epoch.visited) visited += interval.end - interval.begin;
      left += ceil_div(records - std::min(records, visited), train.batch_size * ranks);
    }
    return smaller_limit(train.steps, train.epochs == 0 ? 0 : pacer_report_.global_step.value + left);
  }
  if (train.mode == Mode::kSync) return effective_steps();
  // Each worker goes through the whole set; what the lost ones didn't do is dropped.
  std::uint64_t steps = train.epochs * batches * roster_.members.size();
  if (train.epochs != 0)
    for (const auto& [task, clock] : lost_clocks_)
      if (std::none_of(roster_.members.begin(), roster_.members.end(),
                       [task = task](const Member& member) { return member.task == task; }))
        steps += clock.value;
  return smaller_limit(train.steps, steps);
}

}  // namespace disttrain::chiefd
