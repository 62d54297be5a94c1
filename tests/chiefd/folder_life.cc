#include "tests/chiefd/folder_life.h"

#include <algorithm>

#include "chiefd/folder_work.h"
#include "tests/common/checkpoint/small_job.h"

namespace disttrain::chiefd {
namespace {

using checkpoint::Held;
using checkpoint::ShardWriter;

constexpr std::uint64_t kToken = 7;

ModelSpec model() {
  ModelSpec model;
  model.variables = {VariableSpec{"w", {2, 3}, VariableKind::kTrainable, {}, 1, 1},
                     VariableSpec{"b", {3}, VariableKind::kTrainable, {}, 1, 1}};
  return model;
}

JobConfig config(std::uint32_t keep, std::uint64_t keep_every_steps) {
  JobConfig config;
  config.job.name = "job";
  config.train.optimizer.rule = Rule::kMomentum;
  config.checkpoint.keep = keep;
  config.checkpoint.keep_every_steps = keep_every_steps;
  return config;
}

// Plays the chief and all ps tasks of its job, as far as they use the checkpoint folder.
class FolderChief {
 public:
  explicit FolderChief(checkpoint::Files& files) : files_(files), folder_(files, [] { return std::int64_t{0}; }) {}

  // Restores as the chief's class Job does. If a ps finds a checkpoint damaged, the chief sets this one aside and tries
  // the one before it.
  Result<CheckpointKey> restore(const CheckpointKey& known) {
    const std::string committed = known == CheckpointKey() ? "" : path_of(known);
    Result<FolderAnswer> found = folder_.carry_out(OpenFolder{"/c", "job", false, kToken, committed});
    while (found && found->newest) {
      if (Status shared = checkpoint::check_token(files_, kFolder, kToken); !shared)
        return tl::unexpected(shared.error());
      const Status read = is_whole(files_, found->newest->path);
      if (read) return CheckpointKey(found->newest->generation, found->newest->step);
      if (read.error().code != ErrorCode::kData) return tl::unexpected(read.error());
      found = folder_.carry_out(SetAside{found->newest->path, kToken});
    }
    if (!found) return tl::unexpected(found.error());
    return CheckpointKey();
  }

  // Takes a checkpoint, but only up to the stage `until`. A checkpoint that isn't committed by then is given up.
  enum class Until { kBegun, kWritten, kCommitted };
  Status save(const JobConfig& config, const Layout& layout, const CheckpointKey& key, std::uint64_t attempt,
              Until until) {
    const Result<FolderAnswer> begun = folder_.carry_out(BeginAttempt{key.first, attempt});
    if (!begun) return tl::unexpected(begun.error());
    std::vector<ShardWriter> writers;
    for (std::uint32_t s = 0; s < layout.shards; ++s) {
      Result<ShardWriter> writer = ShardWriter::reserve(files_, begun->path, layout, ShardId(s), 1, {});
      if (!writer) return tl::unexpected(writer.error());
      writers.push_back(std::move(*writer));
    }
    if (until == Until::kBegun) return {};
    CommitAttempt commit{config, "", layout, 100, key.first, attempt, {}};
    for (std::uint32_t s = 0; s < layout.shards; ++s) {
      const Held held = checkpoint::held_by(layout, s, static_cast<float>(key.second.value), 1);
      Result<FileEntry> file = writers[s].write(held.content());
      if (!file) return tl::unexpected(file.error());
      if (Status synced = files_.sync_directory(begun->path); !synced) return synced;
      commit.shards.push_back(
          {{}, key.first, attempt, ShardId(s), {key.second, held.parameters.size(), {}}, *file, std::nullopt});
    }
    if (until == Until::kWritten) return {};
    commit.shards.front().pacer.emplace().global_step = key.second;
    if (before_commit) before_commit();
    const Result<FolderAnswer> committed = folder_.carry_out(commit);
    if (!committed) return tl::unexpected(committed.error());
    if (committed->path != path_of(key)) return fail(ErrorCode::kSoftware, committed->path + " was committed");
    if (!committed->warning.empty()) return fail(ErrorCode::kFailed, committed->warning);
    return {};
  }

  std::function<void()> before_commit;

 private:
  checkpoint::Files& files_;
  JobFolder folder_;
};

std::set<CheckpointKey> visible(checkpoint::Files& files) {
  std::set<CheckpointKey> keys;
  if (const auto found = checkpoint::list_checkpoints(files, kFolder))
    for (const checkpoint::Found& one : *found) keys.insert({one.generation, one.step});
  return keys;
}

// Takes checkpoints, and records what the folder promises after each of them.
class Recorder {
 public:
  Recorder(checkpoint::MemoryFiles& files, Random& random) : files_(files), random_(random) {}

  Life live(const Heritage& heritage) {
    kept_ = heritage.kept;
    note({});
    life_.generation = Generation(heritage.generation.value + 1);
    const Result<CheckpointKey> newest = chief_.restore(std::max(life_.promises.back().newest, heritage.damaged));
    if (!newest) return failed(newest.error().message);
    if (*newest != life_.promises.back().newest) return failed("a checkpoint other than the newest is restored");
    const JobConfig job = config(1 + draw(3), draw(2) == 0 ? 0 : 10 + draw(20));
    const Layout layout = checkpoint::layout_of(model(), 1 + draw(3), 2 + draw(3));
    std::uint64_t step = newest->second.value;
    for (std::uint64_t commits = 2 + draw(3); commits > 0; --commits) {
      if (Status saved = save(job, layout, Step(step += 1 + draw(20))); !saved) return failed(saved.error().message);
    }
    note({});
    return std::move(life_);
  }

 private:
  std::uint32_t draw(std::uint32_t below) { return static_cast<std::uint32_t>(random_.below(below)); }
  void note(const CheckpointKey& next) {
    life_.promises.push_back({files_.operations(), kept_, kept_.empty() ? CheckpointKey() : *kept_.rbegin(), next});
  }
  Life failed(const std::string& problem) {
    life_.problem = problem;
    return std::move(life_);
  }

  Status save(const JobConfig& job, const Layout& layout, Step step) {
    using Until = FolderChief::Until;
    const CheckpointKey key(life_.generation, step);
    chief_.before_commit = {};
    if (draw(4) == 0)
      if (Status given_up = chief_.save(job, layout, key, ++attempts_, draw(2) == 0 ? Until::kBegun : Until::kWritten);
          !given_up)
        return given_up;
    std::size_t before = 0;
    chief_.before_commit = [&] {
      note(key);
      before = life_.promises.size() - 1;
    };
    if (Status saved = chief_.save(job, layout, key, ++attempts_, Until::kCommitted); !saved) return saved;
    // If a crash interrupts the removal of a checkpoint, this checkpoint may still be there or not. So the folder
    // doesn't promise it.
    const std::set<CheckpointKey> there = visible(files_);
    if (there.count(key) == 0) return fail(ErrorCode::kSoftware, path_of(key) + " isn't there after its commit");
    std::erase_if(kept_, [&there](const CheckpointKey& one) { return there.count(one) == 0; });
    life_.promises[before].kept = kept_;
    kept_.insert(key);
    note({});
    // Sometimes saves a checkpoint of the same step again.
    chief_.before_commit = {};
    return draw(6) == 0 ? chief_.save(job, layout, key, ++attempts_, Until::kCommitted) : Status();
  }

  checkpoint::MemoryFiles& files_;
  Random& random_;
  FolderChief chief_{files_};
  Life life_;
  std::set<CheckpointKey> kept_;
  std::uint64_t attempts_ = 0;
};

}  // namespace

std::string path_of(const CheckpointKey& checkpoint) {
  return std::string(kFolder) + "/" + checkpoint::checkpoint_name(checkpoint.first, checkpoint.second);
}

const Promise& Life::at(std::size_t operations) const {
  const auto later = std::upper_bound(promises.begin(), promises.end(), operations,
                                      [](std::size_t done, const Promise& one) { return done < one.operations; });
  return later == promises.begin() ? promises.front() : *std::prev(later);
}

Life live(checkpoint::MemoryFiles& files, const Heritage& heritage, Random& random) {
  return Recorder(files, random).live(heritage);
}

Result<CheckpointKey> restore(checkpoint::Files& files, const CheckpointKey& committed) {
  return FolderChief(files).restore(committed);
}

Status go_on(checkpoint::Files& files, Generation generation) {
  FolderChief chief(files);
  if (const auto begun = chief.restore({}); !begun) return tl::unexpected(begun.error());
  const CheckpointKey key(generation, Step(1));
  const Layout layout = checkpoint::layout_of(model(), 2, 3);
  if (Status saved = chief.save(config(1, 0), layout, key, 99, FolderChief::Until::kCommitted); !saved) return saved;
  if (visible(files) != std::set{key}) return fail(ErrorCode::kSoftware, "retention has kept more than one");
  const Result<std::vector<std::string>> names = files.list(kFolder);
  if (!names) return tl::unexpected(names.error());
  for (const std::string& name : *names)
    if (name.starts_with(".tmp-") || name.starts_with(".del-"))
      return fail(ErrorCode::kSoftware, name + " is never removed");
  return is_whole(files, path_of(key));
}

Status is_whole(checkpoint::Files& files, const std::string& path) {
  const Result<checkpoint::OpenCheckpoint> open = checkpoint::open_checkpoint(files, path);
  if (!open) return tl::unexpected(open.error());
  if (path_of({open->manifest.generation, open->manifest.step}) != path)
    return fail(ErrorCode::kSoftware, path + " holds another checkpoint");
  if (Status good = checkpoint::verify_files(files, open->path, open->manifest); !good) return good;
  return checkpoint::load(files, *open, checkpoint::layout_of(model(), 2, 4));
}

}  // namespace disttrain::chiefd
