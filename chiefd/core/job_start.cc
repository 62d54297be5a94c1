// The start of a job: gather, describe, place, create, open. See job.h.
#include <algorithm>

#include "chiefd/core/job.h"
#include "chiefd/core/placement.h"
#include "common/memory_plan.h"
#include "common/update/update_rule.h"

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

std::string mebibytes(std::uint64_t bytes) {
  return std::to_string(ceil_div(bytes, std::uint64_t{1} << 20)) + " MiB";
}

}  // namespace

void Job::begin(Turn& turn) {
  stage_ = Stage::kGather;
  deadline_ = gather_until_ = turn.now + setup_.timeouts.setup;
  set_state(turn, JobState::kStarting, "gathers its tasks");
  gather(turn);
}

// Waits for all tasks of the cluster file, but for not much longer than min_workers and every ps need.
void Job::gather(Turn& turn) {
  std::string missing;
  std::size_t missing_count = 0;
  bool has_all_ps = true;
  std::vector<Member> workers;
  for (const auto& [id, task] : turn.tasks.all()) {
    if (task.is_there() && task.connected) {
      if (id.role == Role::kWorker) workers.push_back(task.member);
      continue;
    }
    if (id.role == Role::kPs) has_all_ps = false;
    missing += (missing.empty() ? "" : ", ") + to_string(id);
    ++missing_count;
  }
  if (missing_count == 0) return describe(turn, workers);
  reason_ = "waiting for " + std::to_string(missing_count) + " of " + std::to_string(turn.tasks.all().size()) +
            " tasks: " + missing;
  if (!has_all_ps || workers.size() < config().job.min_workers || workers.empty()) {
    complete_enough_at_.reset();
    return;
  }
  if (!complete_enough_at_) complete_enough_at_ = turn.now;
  if (turn.now - *complete_enough_at_ < 2 * setup_.timeouts.silent) return;
  warnings_.push_back("began without " + missing);
  describe(turn, workers);
}

void Job::describe(Turn& turn, const std::vector<Member>& workers) {
  stage_ = Stage::kDescribe;
  starters_ = workers;
  reason_ = to_string(workers.front().task) + " reads the data and builds the model";
  await({workers.front()}, turn.now + setup_.timeouts.setup);
  send(turn, workers.front().task, DescribeJob{id(), setup_.submission.toml});
}

// Nothing is held anywhere yet: if one of those who are counted on is gone, begin again with who is there.
void Job::on_finding_while_describing(Turn& turn, const Finding& finding) {
  const Member& member = finding.member;
  const bool is_good = finding.what == Finding::What::kJoined || finding.what == Finding::What::kReturned;
  if (is_good || (member.task.role == Role::kWorker && !is_worker(member))) return;
  // A worker that dies of the job's data would die of it again.
  if (turn.now >= gather_until_ || (finding.what == Finding::What::kLost && awaited_.count(member) != 0))
    return fail(turn, Error{ErrorCode::kUnavailable, finding.why}, member.task);
  awaited_.clear();
  stage_ = Stage::kGather;
  deadline_ = gather_until_;
  gather(turn);
}

Status Job::check_described(const JobDescribed& described) const {
  if (described.train_records == 0)
    return disttrain::fail(ErrorCode::kData, "the data has no records: check [data] files and records");
  if (!config().evaluate.files.empty() && described.evaluation_records == 0)
    return disttrain::fail(ErrorCode::kData, "[evaluate] has no records: check its files");
  return {};
}

Status Job::check_memory(const Tasks& tasks) const {
  const auto slots = static_cast<std::uint32_t>(update::UpdateRule(config().train).slots());
  const auto workers = static_cast<std::uint32_t>(roster_.members.size());
  std::map<TaskId, std::uint64_t> needed;
  for (std::uint32_t s = 0; s < owners_.size(); ++s)
    needed[owners_[s].ps.task] +=
        bytes_per_shard(layout_, ShardId(s), config().train, slots, workers, setup_.credits).total();
  for (const auto& [id, bytes] : needed) {
    const std::uint64_t offered = tasks.find(id)->hello.memory_bytes;
    if (offered == 0 || bytes <= offered) continue;
    return disttrain::fail(ErrorCode::kConfig, "the job needs " + mebibytes(bytes) + " at " + to_string(id) +
                                                   ", which may use " + mebibytes(offered) +
                                                   ": add ps tasks, or raise memory in its [[ps]] (`disttrain plan` "
                                                   "prints the sum)");
  }
  return {};
}

void Job::place_model(Turn& turn, const JobDescribed& described) {
  described_ = described;
  if (Status status = check_described(described); !status) return fail(turn, status.error(), std::nullopt);
  std::vector<Offer> offers;
  std::uint64_t offered = 0;
  for (const auto& [id, task] : turn.tasks.all()) {
    if (id.role != Role::kPs) continue;
    const std::uint32_t threads = std::max(task.hello.shards, 1u);
    offers.push_back(Offer{id, threads});
    offered += threads;
  }
  Result<Layout> layout = place_on(described.model, config().job.placement, config().job.shards, offered);
  if (!layout) return fail(turn, layout.error(), std::nullopt);
  layout_ = std::move(*layout);
  owners_.clear();
  for (TaskId ps : assign_owners(offers, layout_.shards)) {
    const Task& task = *turn.tasks.find(ps);
    owners_.push_back(Owner{task.member, task.hello.address});
  }
  roster_ = Roster{RosterVersion(1), starters_};
  if (Status status = check_memory(turn.tasks); !status) return fail(turn, status.error(), std::nullopt);
  generation_ = generation_.next();
  token_ = mix(mix(setup_.seed) ^ (std::uint64_t{id().value} << 32) ^ generation_.value);
  stage_ = Stage::kGeneration;
  reason_ = "waits for the chief's own disk";
  deadline_ = turn.now + setup_.timeouts.setup;
  generation_ticket_ = turn.persist(GenerationRecord{id(), generation_});
}

void Job::create_shards(Turn& turn) {
  stage_ = Stage::kCreate;
  reason_ = "the ps tasks create " + std::to_string(layout_.shards) + (layout_.shards == 1 ? " shard" : " shards");
  std::vector<Member> holders;
  for (const Owner& owner : owners_)
    if (std::find(holders.begin(), holders.end(), owner.ps) == holders.end()) holders.push_back(owner.ps);
  await(holders, turn.now + setup_.timeouts.setup);
  for (const Member& ps : holders) ask_to_create(turn, ps);
}

void Job::ask_to_create(Turn& turn, const Member& ps) {
  send(turn, ps.task,
       CreateShards{.job = id(),
                    .generation = generation_,
                    .token = token_,
                    .job_toml = setup_.submission.toml,
                    .layout = layout_,
                    .owners = owners_,
                    .roster = roster_,
                    .warmup_steps = setup_.submission.warmup_steps,
                    .train_records = described_.train_records},
       effective_steps());
}

void Job::open(Turn& turn) {
  stage_ = Stage::kOpen;
  reason_ = "the workers open the job";
  evaluator_ = roster_.members.front();
  await(roster_.members, turn.now + setup_.timeouts.setup);
  for (const Member& worker : roster_.members) ask_to_open(turn, worker);
}

void Job::ask_to_open(Turn& turn, const Member& worker) {
  send(turn, worker.task,
       OpenJob{.job = id(),
               .generation = generation_,
               .token = token_,
               .job_toml = setup_.submission.toml,
               .layout = layout_,
               .owners = owners_,
               .roster = roster_,
               .train_records = described_.train_records,
               .evaluates = worker == *evaluator_},
       effective_steps());
}

void Job::start_training(Turn& turn) {
  stage_ = Stage::kTrain;
  opened_ = true;
  deadline_.reset();
  unfinished_ = std::set<Member>(roster_.members.begin(), roster_.members.end());
  progress_at_ = turn.now;
  lending_ = Lending(config(), described_.train_records, roster_);
  set_state(
      turn, JobState::kRunning,
      "trains with " + std::to_string(roster_.members.size()) + (roster_.members.size() == 1 ? " worker" : " workers"));
  send_to_workers(turn, StartJob{id(), generation_});
  lend(turn);
}

// What the pacer counts to: the steps of the configuration; and in sync over whole sets those that the epochs make.
std::uint64_t Job::effective_steps() const {
  const TrainSection& train = config().train;
  if (train.mode != Mode::kSync || config().data.sharding != Sharding::kNone) return train.steps;
  return smaller_limit(train.steps, train.epochs * ceil_div(described_.train_records, train.batch_size));
}

std::uint64_t Job::steps_target() const {
  const TrainSection& train = config().train;
  if (described_.train_records == 0) return train.steps;
  const std::uint64_t batches = ceil_div(described_.train_records, std::max(train.batch_size, 1u));
  if (config().data.sharding == Sharding::kLease) {
    // With backup workers a step visits what `aggregate` of them bring.
    const std::uint64_t workers = train.aggregate != 0 ? train.aggregate : std::max<std::size_t>(starters_.size(), 1);
    const std::uint64_t ranks = train.mode == Mode::kSync ? workers : 1;
    return smaller_limit(train.steps, train.epochs * ceil_div(described_.train_records, train.batch_size * ranks));
  }
  if (train.mode == Mode::kSync) return effective_steps();
  // Each worker goes through the whole set; what the lost ones didn't do is dropped.
  std::uint64_t steps = train.epochs * batches * (starters_.size() - lost_.size());
  if (train.epochs != 0)
    for (const Member& worker : lost_) {
      const auto done = worker_steps_.find(worker);
      if (done != worker_steps_.end()) steps += done->second;
    }
  return smaller_limit(train.steps, steps);
}

}  // namespace disttrain::chiefd
