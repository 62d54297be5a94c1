// The laws of checkpoints: see laws.h.
#include <algorithm>
#include <tuple>

#include "chiefd/core/placement.h"
#include "common/checkpoint/job_folder.h"
#include "common/checkpoint/shard_file.h"
#include "tests/sim/laws.h"

namespace disttrain::sim {
namespace {

// Calls `take` for each word of all shards. Its arguments are the bucket, the variable, the word's index in the
// variable, and its index in the shard.
template <typename Take>
void each(const Layout& in, const Take& take) {
  for (std::uint32_t id = 0; id < in.buckets.size(); ++id)
    for (const Slice& slice : slices_of(in, BucketId(id)))
      for (std::uint64_t w = 0; w < slice.words; ++w)
        take(in.buckets[id], slice.variable, slice.variable_begin + w,
             in.buckets[id].shard_begin + slice.bucket_begin + w);
}

}  // namespace

void Laws::committed(const chiefd::CommitAttempt& commit, JobId job, const std::string& path) {
  const RunId run{job, commit.generation};
  const auto open = checkpoint::open_checkpoint(jobs_.disk->truth(), path);
  // The commit has set a damaged checkpoint of the same step aside, unless it took it for a good one: not every flipped
  // bit does harm.
  if (damaged_.count(path) != 0 && (!open || open->manifest.attempt != commit.attempt)) return;
  damaged_.erase(path);
  if (!open) return violated("I14: a committed checkpoint can't be opened: " + open.error().message);
  if (Status good = checkpoint::verify_files(jobs_.disk->truth(), path, open->manifest); !good)
    return violated("I14: a committed checkpoint doesn't verify: " + good.error().message);
  if (generations_[job].generation != commit.generation)
    return violated("I19: generation " + std::to_string(commit.generation.value) +
                    " commits a checkpoint although generation " + std::to_string(generations_[job].generation.value) +
                    " has begun");
  const std::string folder = path.substr(0, path.rfind('/'));
  newest_[folder] = std::max(newest_[folder], {{commit.generation, open->manifest.step}, path});
  folder_is_good("after a commit");
  // A commit never replaces an existing checkpoint. So the checkpoint at this path may be that of an earlier attempt.
  if (open->manifest.attempt != commit.attempt) return;
  is_as_cut(commit, run, open->manifest, path);
  adds_up(commit, run, open->manifest, path);
}

void Laws::is_as_cut(const chiefd::CommitAttempt& commit, const RunId& run, const checkpoint::Manifest& manifest,
                     const std::string& path) {
  const auto& [attempt, cuts] = cuts_[run];
  if (attempt != commit.attempt || cuts.size() != commit.layout.shards || manifest.shards.size() != cuts.size())
    return violated("I17: " + path + " has shards of several attempts");
  if (manifest.step != cuts.at(ShardId(0)).version)
    return violated("I13: " + path + " names another step than the pacer's cut");
  for (const auto& [shard, cut] : cuts) {
    std::vector<float> values(shard_words(commit.layout, shard));
    std::vector<std::vector<float>> slots(manifest.slots, values);
    const std::vector<std::span<float>> into(slots.begin(), slots.end());
    if (Status read = checkpoint::read_shard(jobs_.disk->truth(), path, manifest, commit.layout, shard, values, into);
        !read)
      return violated("I14: " + read.error().message);
    const auto same = [](std::span<const float> a, std::span<const float> b) { return same_bits(a, b); };
    if (!same_bits(values, cut.values) || !std::ranges::equal(slots, cut.slots, same))
      return violated("I18: " + path + ": shard " + std::to_string(shard.value) + " differs from its cut");
    if (commit.config.train.mode == Mode::kSync && cut.version != manifest.step)
      return violated("I17: " + path + ": shard " + std::to_string(shard.value) + " has another step");
    for (const auto& [worker, clock] : cut.clocks) {
      const auto there = cuts.at(ShardId(0)).clocks.find(worker);
      const bool is_lost = fenced_[run].count(worker) != 0;
      if (commit.config.train.mode == Mode::kSync || is_lost || there == cuts.at(ShardId(0)).clocks.end()) continue;
      if (there->second != clock)
        return violated("I17: " + path + ": the shards have different pushes of " + to_string(worker.task));
    }
  }
  batches_of_[path] = cuts.at(ShardId(0)).batches;
  restores_elsewhere(commit.layout, cuts, manifest, path);
}

// I18: a restore into another number of shards (2 if there is 1 now, else 1) gives each word the same bits.
void Laws::restores_elsewhere(const Layout& layout, const std::map<ShardId, CutTaken>& cuts,
                              const checkpoint::Manifest& manifest, const std::string& path) {
  const std::uint32_t shards = layout.shards == 1 ? 2 : 1;
  const auto other = chiefd::place(layout.model, Placement::kGreedy, shards);
  if (!other) return;
  ByWord& values = values_of_[path];
  each(layout, [&](const Bucket& bucket, std::uint32_t variable, std::uint64_t word, std::uint64_t at) {
    const CutTaken& cut = cuts.at(bucket.shard);
    std::vector<float>& here = values[{variable, word}] = {cut.values[at]};
    for (const std::vector<float>& slot : cut.slots) here.push_back(slot[at]);
  });
  std::map<ShardId, std::vector<std::vector<float>>> read;  // parameters, then slots
  for (std::uint32_t s = 0; s < shards; ++s) {
    std::vector<std::vector<float>>& into = read[ShardId(s)];
    into.assign(1 + manifest.slots, std::vector<float>(shard_words(*other, ShardId(s))));
    const std::vector<std::span<float>> slots(into.begin() + 1, into.end());
    if (Status ok = checkpoint::read_shard(jobs_.disk->truth(), path, manifest, *other, ShardId(s), into[0], slots);
        !ok)
      return violated("I18: can't restore " + path + " into " + std::to_string(shards) +
                      " shards: " + ok.error().message);
  }
  each(*other, [&](const Bucket& bucket, std::uint32_t variable, std::uint64_t word, std::uint64_t at) {
    const std::vector<float>& expected = values[{variable, word}];
    for (std::size_t i = 0; i < expected.size(); ++i)
      if (!same_bits(std::span(read[bucket.shard][i]).subspan(at, 1), std::span(expected).subspan(i, 1)))
        violated("I18: " + path + " has other values when it is restored into " + std::to_string(shards) + " shards");
  });
}

// I10, I11, I13, I17: the ledger of a checkpoint has exactly those records whose pushes are in its parameters.
void Laws::adds_up(const chiefd::CommitAttempt& commit, const RunId& run, const checkpoint::Manifest& manifest,
                   const std::string& path) {
  if (commit.config.data.sharding != Sharding::kLease) return;
  std::uint64_t visited = jobs_.records * manifest.pacer.complete_epochs;
  float epoch = 0.0F;
  for (std::uint64_t record = 0; record < jobs_.records; ++record) epoch += value_of(record);
  float sum = epoch * static_cast<float>(manifest.pacer.complete_epochs);
  for (const EpochLedger& entry : manifest.pacer.ledger)
    for (const Interval& interval : entry.visited) {
      visited += interval.end - interval.begin;
      for (std::uint64_t record = interval.begin; record < interval.end; ++record) sum += value_of(record);
    }
  if (visited != manifest.pacer.examples)
    return violated("I11: " + path + " counts " + std::to_string(manifest.pacer.examples) +
                    " examples, but its ledger has " + std::to_string(visited));
  visited_of_[path] = static_cast<double>(sum);
  if (commit.config.train.mode == Mode::kSync) return;
  const auto& cuts = cuts_[run].second;
  if (!cuts.contains(ShardId(0))) return;  // is_as_cut() has found this
  std::map<ShardId, const TakenByWorker*> shards;
  for (const auto& [shard, cut] : cuts) shards[shard] = &cut.taken;
  are_whole(run, shards, path);
  // If a chief died during the commit of the checkpoint with which this generation began, the laws don't know the
  // ledger of that checkpoint.
  const std::string& from = generations_[run.first].restore_path;
  const auto before = visited_of_.find(from);
  if (before == visited_of_.end() && !from.empty()) return;
  double expected = before == visited_of_.end() ? 0.0 : before->second;
  for (const auto& [worker, taken] : cuts.at(ShardId(0)).taken) expected += taken.visited;
  if (expected != static_cast<double>(sum))
    violated("I10, I13, I17: the ledger of " + path + " has records that add up to " + std::to_string(sum) +
             ", but those of its pushes add up to " + std::to_string(expected));
}

void Laws::folder_is_good(const std::string& when) {
  // If the disk ever lied about a sync, any checkpoint may be lost.
  if (jobs_.disk->has_lied()) return;
  for (const auto& [folder, newest] : newest_) {
    if (damaged_.count(newest.second) != 0) continue;
    const auto open = checkpoint::open_checkpoint(jobs_.disk->truth(), newest.second);
    if (!open) violated("I15, I16: " + when + " " + newest.second + " is gone: " + open.error().message);
    if (open && !checkpoint::verify_files(jobs_.disk->truth(), newest.second, open->manifest))
      violated("I15: " + when + " " + newest.second + " doesn't verify");
  }
}

void Laws::power_lost() {
  folder_is_good("after a loss of power");
  for (const auto& [folder, newest] : newest_) {
    const auto found = checkpoint::list_checkpoints(jobs_.disk->truth(), folder);
    for (std::size_t i = 0; found && i < found->size() && !jobs_.disk->has_lied(); ++i) {
      if (damaged_.count((*found)[i].path) != 0) continue;
      const auto open = checkpoint::open_checkpoint(jobs_.disk->truth(), (*found)[i].path);
      if (!open || !checkpoint::verify_files(jobs_.disk->truth(), (*found)[i].path, open->manifest))
        violated("I14: after a loss of power " + (*found)[i].path + " is visible, but not complete");
    }
  }
}

void Laws::found_newest(const std::string& folder, const std::optional<chiefd::RestorePoint>& newest) {
  const auto found = checkpoint::list_checkpoints(jobs_.disk->truth(), folder);
  if (!found) return;
  const std::string said = newest ? checkpoint::checkpoint_name(newest->generation, newest->step) : "none";
  // Not in the list's order, which a mutant changes. The names of the checkpoints of a generation are in the order of
  // their steps.
  std::pair<Generation, std::string> best(Generation(), "none");
  for (const checkpoint::Found& there : *found) {
    const std::string name = checkpoint::checkpoint_name(there.generation, there.step);
    // A damaged one keeps its name if it can't be set aside. Not every flipped bit does harm. If the disk has lied
    // about a sync, a loss of power may have damaged any.
    const bool is_lost =
        jobs_.disk->has_lied() && !checkpoint::open_checkpoint(jobs_.disk->truth(), there.path).has_value();
    if ((damaged_.count(there.path) == 0 && !is_lost) || name == said)
      best = std::max(best, std::pair(there.generation, name));
  }
  if (said != best.second)
    violated("I15: the chief chose " + said + " in " + folder + ", but the newest is " + best.second);
}

void Laws::rolls_back(const chiefd::GenerationRecord& record, const std::string& folder) {
  const auto found = checkpoint::list_checkpoints(jobs_.disk->truth(), folder);
  // The chief may have chosen this checkpoint before a fault damaged it.
  if (!found || jobs_.disk->has_lied() || damaged_.count(record.restore_path) != 0) return;
  for (const checkpoint::Found& there : *found) {
    if (there.path == record.restore_path) return;
    if (damaged_.count(there.path) == 0)
      return violated("I15: generation " + std::to_string(record.generation.value) + " begins with " +
                      (record.restore_path.empty() ? "initial values" : record.restore_path) + " instead of " +
                      there.path);
  }
}

void Laws::begins_with(const RunId& run, const JobConfig& job, const Layout& layout, ShardId shard,
                       const CutTaken& held) {
  const chiefd::GenerationRecord& record = generations_[run.first];
  if (record.generation != run.second) return;
  const auto saved = values_of_.find(record.restore_path);
  if (saved == values_of_.end() && !record.restore_path.empty()) return;
  each(layout, [&](const Bucket& bucket, std::uint32_t variable, std::uint64_t word, std::uint64_t at) {
    if (bucket.shard != shard) return;
    std::vector<float> here = {held.values[at]};
    for (const std::vector<float>& slot : held.slots) here.push_back(slot[at]);
    std::vector<float> expected(here.size(), 0.0F);
    // Values that workers bring come later.
    if (!jobs_.model.brings_values || !job.checkpoint.init_from.empty())
      expected[0] = first_word(job, jobs_.model, variable, word);
    if (job.evaluate.average > 0.0) expected.back() = expected[0];
    if (saved != values_of_.end()) expected = saved->second.at({variable, word});
    if (!same_bits(here, expected))
      violated("I18: shard " + std::to_string(shard.value) + " of generation " + std::to_string(run.second.value) +
               " begins with other values than " +
               (record.restore_path.empty() ? "the initial ones" : "those of " + record.restore_path));
  });
}

void Laws::saved(const std::string& path) {
  if (jobs_.disk->has_lied() || damaged_.count(path) != 0) return;
  if (const auto open = checkpoint::open_checkpoint(jobs_.disk->truth(), path); !open)
    violated("I15: a client was told that " + path + " is saved, but it can't be opened: " + open.error().message);
}

void Laws::has_last_checkpoint(const JobConfig& job, Step step) {
  if (job.checkpoint.directory.empty() || !job.checkpoint.at_end) return;
  if (jobs_.disk->has_lied() || was_any_damaged()) return;
  const auto found = checkpoint::list_checkpoints(jobs_.disk->truth(), job.checkpoint.directory + "/" + job.job.name);
  const auto is_it = [step](const checkpoint::Found& there) { return there.step == step; };
  if (!found || std::none_of(found->begin(), found->end(), is_it))
    violated("I15: the job has ended without a checkpoint of its last step, " + std::to_string(step.value));
}

}  // namespace disttrain::sim
