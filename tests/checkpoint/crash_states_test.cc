// Every operation of several commits and of retention is recorded; after each of them, states that a crash could leave
// are built: unsynced names there or not, unsynced bytes there, torn, zero or missing, in any combination. In each,
// every visible checkpoint is whole, and the newest is at least the last one whose commit had returned.
#include <gtest/gtest.h>

#include <unordered_set>

#include "tests/checkpoint/memory_files.h"
#include "tests/checkpoint/small_job.h"

namespace disttrain::checkpoint {
namespace {

class Explorer {
 public:
  using Lies = std::function<bool(MemoryFiles::Op, const std::string& path)>;

  explicit Explorer(Lies lies = {}) {
    files_.lies = std::move(lies);
    EXPECT_TRUE(files_.make_directory("/c"));
    EXPECT_TRUE(files_.sync_directory(""));
    EXPECT_TRUE(lock_job_folder(files_, "/c", "job"));
    note(0, 0);
    std::uint64_t attempt = 0;
    const std::vector<std::pair<std::uint64_t, std::uint64_t>> commits = {{1, 10}, {1, 20}, {2, 15}, {2, 30}, {3, 31}};
    for (const auto& [generation, step] : commits) {
      const Layout& layout = attempt % 2 == 0 ? two_ : three_;
      EXPECT_TRUE(save(files_, "/c/job", layout, generation, step, 1, ++attempt));
      note(generation, step);
      EXPECT_TRUE(retain(files_, "/c/job", Retention{2, 0, ""}));
    }
  }

  // Builds so many states; returns the first violation in words, or nothing.
  std::string explore(std::size_t states) {
    const std::size_t points = files_.operations() + 1;
    for (std::size_t i = 0; i < states; ++i) {
      const std::size_t point = i % points;
      Random random(i);
      const auto state = files_.after_crash(point, random);
      // The promise differs from point to point; the state is looked at once for each.
      if (!seen_.insert(std::to_string(promised_at(point)) + state->fingerprint()).second) continue;
      const std::string violation = look_at(*state, promised_at(point));
      if (!violation.empty())
        return "after " + std::to_string(point) + " operations (seed " + std::to_string(i) + "): " + violation;
    }
    return "";
  }
  std::size_t different_states() const { return seen_.size(); }

 private:
  struct Promise {
    std::size_t operations;
    Generation generation;
    Step step;
  };

  void note(std::uint64_t generation, std::uint64_t step) {
    promises_.push_back({files_.operations(), Generation(generation), Step(step)});
  }
  std::size_t promised_at(std::size_t point) const {
    std::size_t last = 0;
    for (std::size_t i = 0; i < promises_.size(); ++i)
      if (promises_[i].operations <= point) last = i;
    return last;
  }

  std::string look_at(MemoryFiles& state, std::size_t promised) {
    const auto found = list_checkpoints(state, "/c/job");
    if (!found) return found.error().message;
    for (const Found& checkpoint : *found) {
      const Result<OpenCheckpoint> open = open_checkpoint(state, checkpoint.path);
      if (!open) return open.error().message;
      if (Status good = verify_files(state, open->path, open->manifest); !good) return good.error().message;
      if (Status loaded = load(state, *open, two_); !loaded) return loaded.error().message;
    }
    const Promise& promise = promises_[promised];
    const bool is_kept = !found->empty() && std::tie(found->front().generation, found->front().step) >=
                                                std::tie(promise.generation, promise.step);
    if (promise.step.value != 0 && !is_kept)
      return "the commit of step " + std::to_string(promise.step.value) + " is lost";
    // Training goes on from there.
    if (promise.step.value == 0) return "";
    if (const Result<std::string> next = save(state, "/c/job", two_, 9, 99, 1, 77); !next) return next.error().message;
    return "";
  }

  MemoryFiles files_;
  const Layout two_ = layout_of(small_model(), 2, 5);
  const Layout three_ = layout_of(small_model(), 3, 4);
  std::vector<Promise> promises_;
  std::unordered_set<std::string> seen_;
};

TEST(CrashStates, EveryVisibleCheckpointIsWholeAndNoCommitIsLost) {
  Explorer explorer;
  EXPECT_EQ(explorer.explore(150'000), "");
  EXPECT_GT(explorer.different_states(), 1000u);
  RecordProperty("different_states", static_cast<int>(explorer.different_states()));
}

// The explorer finds what it is for: each sync that is left out loses something.
TEST(CrashStates, EachSyncThatIsLeftOutIsFound) {
  using Op = MemoryFiles::Op;
  const std::vector<std::pair<const char*, Explorer::Lies>> lies = {
      {"of shard files",
       [](Op op, const std::string& path) { return op == Op::kSync && path.ends_with(".safetensors"); }},
      {"of the manifest",
       [](Op op, const std::string& path) { return op == Op::kSync && path.ends_with(kManifestName); }},
      {"of the attempt's folder",
       [](Op op, const std::string& path) {
         return op == Op::kSyncDirectory && path.find(".tmp-") != std::string::npos;
       }},
      {"of the job's folder",
       [](Op op, const std::string& path) { return op == Op::kSyncDirectory && path == "/c/job"; }},
      {"of the folder of all jobs",
       [](Op op, const std::string& path) { return op == Op::kSyncDirectory && path == "/c"; }},
  };
  for (const auto& [what, lie] : lies) EXPECT_NE(Explorer(lie).explore(20'000), "") << what;
}

}  // namespace
}  // namespace disttrain::checkpoint
