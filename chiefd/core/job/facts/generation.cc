#include "chiefd/core/job/facts/generation.h"

#include <algorithm>
#include <map>
#include <utility>

#include "chiefd/core/placement.h"
#include "common/mutant.h"

namespace disttrain::chiefd {
namespace {

// splitmix64 (Steele, Lea, Flood 2014): spreads a seed and a job's number over 64 bits.
std::uint64_t mix(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace

bool GenerationPlan::is_owner(const Member& member) const {
  return std::any_of(placed_.owners.begin(), placed_.owners.end(),
                     [&member](const Owner& owner) { return owner.ps == member; });
}

std::vector<Member> GenerationPlan::holders() const {
  std::vector<Member> holders;
  for (const Owner& owner : placed_.owners)
    if (std::find(holders.begin(), holders.end(), owner.ps) == holders.end()) holders.push_back(owner.ps);
  return holders;
}

// The secret (token_) is made from the chief's seed, which is random and on no disk. The number in the checkpoint
// folder (mark_) isn't secret, so it is made from the journal's id.
void GenerationPlan::draw_numbers(Term term) {
  const std::uint64_t which = std::uint64_t{setup_.id.value} << 32 ^ term.value << 16 ^ ++numbers_drawn_;
  token_ = std::max<std::uint64_t>(mix(mix(setup_.seed) ^ which), 1);
  mark_ = std::max<std::uint64_t>(mix(mix(setup_.journal.value) ^ which), 1);
}

Status GenerationPlan::check_restore() const {
  if (!restore_) return {};
  const auto refuse = [this](const std::string& why, const std::string& back) {
    return fail(ErrorCode::kConfig, restore_->path + " was made with " + why + ": " + back +
                                        ", or set another job.name and set checkpoint.init_from to this checkpoint");
  };
  const JobConfig& config = setup_.config();
  const bool has_own_order = config.data.sharding == Sharding::kNone;
  const std::uint64_t own_batch = has_own_order ? config.train.step_records() : 0;
  const std::uint64_t former = restore_->own_batch.value_or(own_batch);
  if ((former == 0) != (own_batch == 0))
    return refuse("another data.sharding, so it doesn't say which records the job has still to train on with this one",
                  "set data.sharding = " + std::string(has_own_order ? "\"lease\"" : "\"none\"") + " again");
  if (former != own_batch)
    return refuse("batches of " + std::to_string(former) +
                      " records, of which it has a number for each worker, because "
                      "data.sharding is \"none\"; the job now has batches of " +
                      std::to_string(own_batch),
                  "set train.batch_size and train.accumulate back");
  // In sync the step says where each worker is in its own order.
  const bool is_uneven =
      std::ranges::any_of(restore_->batches, [this](const auto& worker) { return worker.second != restore_->step; });
  if (has_own_order && setup_.is_sync() && is_uneven)
    return refuse(
        "train.mode = \"async\" or \"ssp\", in which each worker goes through data.sharding = \"none\" at its "
        "own speed, so no step of \"sync\" says what the workers have still to train on",
        "set train.mode back");
  if (restore_->records != 0 && restore_->records != described_->train_records)
    return refuse(std::to_string(restore_->records) + " training records; the data now has " +
                      std::to_string(described_->train_records),
                  "put the former data back");
  return {};
}

MemoryFit GenerationPlan::memory_fit(const Tasks& tasks, const Placed& placed) const {
  std::vector<TaskId> owners;
  std::map<TaskId, std::uint64_t> memory;
  for (const Owner& owner : placed.owners) {
    owners.push_back(owner.ps.task);
    if (const Task* task = tasks.find(owner.ps.task)) memory[owner.ps.task] = task->hello.memory_bytes;
  }
  return MemoryFit(placed.layout, owners, setup_.config(), setup_.credits, memory);
}

Result<std::uint32_t> GenerationPlan::plan_places(const Tasks& tasks, const Placed& placed, std::size_t least,
                                                  std::size_t roster) const {
  const auto fewest = static_cast<std::uint32_t>(least);
  const MemoryFit fit = memory_fit(tasks, placed);
  if (const std::string problem = fit.why_not(fewest); !problem.empty()) return fail(ErrorCode::kConfig, problem);
  const auto most = std::max(fewest, static_cast<std::uint32_t>(roster));
  return fit.most_workers(wanted_places(most, setup_.listed_workers, setup_.takes_unlisted));
}

Result<GenerationPlan::Placed> GenerationPlan::plan(const Tasks& tasks, const std::function<bool(TaskId)>& is_avoided,
                                                    std::size_t roster) const {
  std::vector<Offer> offers;
  std::uint64_t offered = 0;
  for (const auto& [id, task] : tasks.all()) {
    if (id.role != Role::kPs || !task.takes_work() || is_avoided(id)) continue;
    const std::uint32_t threads = std::max(task.hello.shards, 1u);
    offers.push_back(Offer{id, threads});
    offered += threads;
  }
  if (offered == 0)
    return fail(ErrorCode::kUnavailable,
                "the other tasks can't reach any connected ps: check its address, and firewalls");
  Result<Layout> layout = place_on(described_->model, placement_of(setup_.config()), setup_.config().job.shards, roster,
                                   static_cast<std::uint32_t>(offered));
  if (!layout) return tl::unexpected(layout.error());
  Placed placed{std::move(*layout), bucket_size_for(roster), {}};
  for (TaskId ps : assign_owners(offers, placed.layout.shards)) {
    const Task& task = *tasks.find(ps);
    placed.owners.push_back(Owner{task.member, task.hello.address});
  }
  return placed;
}

void GenerationPlan::keep_owners(const Tasks& tasks) {
  for (Owner& owner : placed_.owners) {
    const Task& task = *tasks.find(owner.ps.task);
    owner = Owner{task.member, task.hello.address};
  }
}

void GenerationPlan::begin(Generation newest_in_folder) {
  has_predecessor_ = number_.value != 0;
  const bool keeps_number = has_predecessor_ && DISTTRAIN_MUTANT(kGenerationNotRaised);
  if (!keeps_number) number_ = std::max(number_, newest_in_folder).next();
}

void GenerationPlan::take_up(const GenerationRecord& record, std::size_t roster) {
  placed_.owners = record.owners;
  placed_.bucket_size = record.has_small_buckets ? BucketSize::kSmall : BucketSize::kLarge;
  mark_ = record.mark;
  // The record may come from an older version of the chief. Such a record has no `places`. So this chief assumes that
  // the shards have memory only for the workers of the roster. Then no other worker can join.
  places_ = std::max(record.places, static_cast<std::uint32_t>(roster));
  if (record.restore_path != "")
    restore_ = RestorePoint{record.restore_path, Generation(), record.restore_step, {}, 0, {}};
}

Status GenerationPlan::recompute_layout() {
  Result<Layout> layout = chiefd::place(described_->model, placement_of(setup_.config()),
                                        static_cast<std::uint32_t>(placed_.owners.size()), placed_.bucket_size);
  if (!layout) return tl::unexpected(layout.error());
  placed_.layout = std::move(*layout);
  return {};
}

}  // namespace disttrain::chiefd
