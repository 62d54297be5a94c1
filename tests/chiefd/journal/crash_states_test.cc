// Records every operation of several lives of a chief (folder_life.h), and builds the states that a crash after each
// operation could leave. An unsynced name is there or not. Unsynced bytes are complete, cut off, zeros, in pieces or
// missing. All of this occurs in any combination. In each state, the test checks:
// 1. Every checkpoint that was committed and not removed is there and complete.
// 2. Every other visible checkpoint is complete, too.
// 3. The newest checkpoint is restored, and training goes on.
// The next life begins with one of these states.
#include <gtest/gtest.h>

#include <cstdlib>
#include <unordered_map>
#include <unordered_set>

#include "common/checkpoint/checksum.h"
#include "tests/chiefd/folder_life.h"

namespace disttrain::chiefd {
namespace {

using checkpoint::MemoryFiles;
using Op = MemoryFiles::Op;

constexpr int kLives = 3;
constexpr int kStatesOfAPoint = 300;
constexpr int kInVain = 8;

class Explorer {
 public:
  // A planted bug: for example, it drops an operation that a life has recorded.
  using Bug = std::function<void(MemoryFiles&, std::size_t operation)>;
  explicit Explorer(Bug bug = {}) : bug_(std::move(bug)) {}

  std::size_t different_states() const { return seen_.size(); }
  std::size_t different_visible() const { return restored_.size(); }

  // Runs several lives, one after the other. Returns the first violation, or "".
  std::string explore(std::uint64_t story) {
    Random random(story);
    auto files = std::make_unique<MemoryFiles>();
    if (!files->make_directory("/c")) return "there is no folder";
    files->assume_durable();
    Heritage heritage;
    for (int i = 0; i < kLives; ++i) {
      const std::string where = "story " + std::to_string(story) + ", life " + std::to_string(i) + ": ";
      const Life life = live(*files, heritage, random);
      if (!life.problem.empty()) return where + life.problem;
      for (std::size_t op = files->operations(); bug_ && op-- > life.promises.front().operations;) bug_(*files, op);
      const std::size_t begin = life.promises.front().operations;
      for (std::size_t point = begin; point <= files->operations(); ++point) {
        const std::string problem = look_around(*files, point, life, heritage, random);
        if (!problem.empty()) return where + "after " + std::to_string(point) + " operations: " + problem;
      }
      const std::size_t end = begin + random.below(files->operations() + 1 - begin);
      files = files->after_crash(end, random);
      files->assume_durable();
      heritage = inherit(*files, life, life.at(end), heritage, random);
    }
    return "";
  }

 private:
  // Builds states that a crash at this point could leave, and checks those that are new. Stops when kInVain states in a
  // row aren't new.
  std::string look_around(const MemoryFiles& files, std::size_t point, const Life& life, const Heritage& heritage,
                          Random& random) {
    int in_vain = 0;
    for (int state = 0; state < kStatesOfAPoint && in_vain < kInVain; ++state) {
      const std::size_t before = looked_at_.size();
      if (std::string problem = look_at(*files.after_crash(point, random), life, life.at(point), heritage);
          !problem.empty())
        return problem;
      in_vain = looked_at_.size() == before ? in_vain + 1 : 0;
    }
    return "";
  }

  std::string look_at(MemoryFiles& state, const Life& life, const Promise& promise, const Heritage& heritage) {
    const std::uint64_t all = state.fingerprint();
    // The checks depend on the promise, so each state is checked once for each promise.
    if (!looked_at_.insert(all * 31 + hash_of(promise)).second) return "";
    seen_.insert(all);
    std::set<CheckpointKey> whole;
    const auto found = list_checkpoints(state, kFolder);
    if (!found) return found.error().message;
    std::uint64_t visible = hash_of(promise);
    for (const checkpoint::Found& one : *found) {
      const CheckpointKey key(one.generation, one.step);
      const std::uint64_t content = state.fingerprint(one.path) * 31 + hash(one.path);
      visible = visible * 31 + content;
      if (key == heritage.damaged) continue;
      auto& verdict = verdicts_[content];
      if (!verdict) verdict = is_whole(state, one.path).map_error([](const Error& e) { return e.message; });
      if (!*verdict) return one.path + " can be seen and isn't whole: " + verdict->error();
      whole.insert(key);
    }
    for (const CheckpointKey& kept : promise.kept)
      if (whole.count(kept) == 0) return path_of(kept) + " is lost";
    const CheckpointKey newest = whole.empty() ? CheckpointKey() : *whole.rbegin();
    if (newest != promise.newest && newest != promise.next) return "something else than the newest is restored";
    return goes_on(state, visible, newest, life, std::max(promise.newest, heritage.damaged));
  }

  // Restores from the state, unless a state with the same checkpoints and names was restored before. Then goes on
  // training, unless this was done before for a state with the same names.
  std::string goes_on(MemoryFiles& state, std::uint64_t visible, const CheckpointKey& newest, const Life& life,
                      const CheckpointKey& known) {
    std::uint64_t names = 0;
    if (const auto listed = state.list(kFolder))
      for (const std::string& name : *listed) names = names * 31 + hash(name);
    if (!restored_.insert(visible * 31 + names).second) return "";
    const auto restored = restore(state, known);
    if (!restored) return "can't be restored: " + restored.error().message;
    if (*restored != newest) return "the chief restores something else than the newest";
    if (!gone_on_.insert(names).second) return "";
    if (Status next = go_on(state, Generation(life.generation.value + 1)); !next)
      return "can't go on: " + next.error().message;
    return "";
  }

  // The state that the next chief finds. Sometimes damages the newest checkpoint first.
  static Heritage inherit(MemoryFiles& files, const Life& life, const Promise& promise, const Heritage& last,
                          Random& random) {
    Heritage next{promise.kept, {}, life.generation};
    const auto found = list_checkpoints(files, kFolder);
    for (std::size_t i = 0; found && i < found->size(); ++i) {
      const CheckpointKey key((*found)[i].generation, (*found)[i].step);
      if (key == last.damaged)
        next.damaged = key;
      else
        next.kept.insert(key);
    }
    if (next.damaged != CheckpointKey() || next.kept.empty() || random.below(2) == 0) return next;
    next.damaged = *next.kept.rbegin();
    next.kept.erase(next.damaged);
    const std::string manifest = path_of(next.damaged) + "/" + checkpoint::kManifestName;
    const Result<std::vector<std::string>> names = files.list(path_of(next.damaged));
    const std::string shard = path_of(next.damaged) + "/" + names->back();
    switch (random.below(3)) {
      case 0:
        files.content(manifest).resize(random.below(files.content(manifest).size()));
        break;
      case 1:
        files.content(shard)[random.below(files.content(shard).size())] ^= std::byte{16};
        break;
      default:
        static_cast<void>(files.remove_file(shard));
    }
    files.assume_durable();
    return next;
  }

  static std::uint64_t hash(const std::string& text) { return checkpoint::checksum_of(std::as_bytes(std::span(text))); }
  static std::uint64_t hash_of(const Promise& promise) {
    std::string text = path_of(promise.next) + ":" + path_of(promise.newest) + ":";
    for (const CheckpointKey& kept : promise.kept) text += path_of(kept);
    return hash(text);
  }

  const Bug bug_;
  std::unordered_set<std::uint64_t> seen_;
  std::unordered_set<std::uint64_t> looked_at_;
  std::unordered_set<std::uint64_t> restored_;
  std::unordered_set<std::uint64_t> gone_on_;
  std::unordered_map<std::uint64_t, std::optional<tl::expected<void, std::string>>> verdicts_;  // by name and content
};

// Checks 100,000 states. With a sanitizer this would take minutes, so then the test checks only enough states to cover
// the code.
TEST(CrashStates, AllAreRestoredToTheNewestThatWasCommitted) {
  const std::uint64_t wanted = std::getenv("DISTTRAIN_SANITIZE") == nullptr ? 100'000 : 5'000;
  Explorer explorer;
  std::uint64_t stories = 0;
  while (explorer.different_states() < wanted && stories < 1000) ASSERT_EQ(explorer.explore(stories++), "");
  EXPECT_GE(explorer.different_states(), wanted);
  RecordProperty("stories", static_cast<int>(stories));
  RecordProperty("different_states", static_cast<int>(explorer.different_states()));
  RecordProperty("different_in_what_is_seen", static_cast<int>(explorer.different_visible()));
}

// ---- planted bugs, which this test must find

bool is_commit(const MemoryFiles::Done& done) {
  return done.op == Op::kRename && done.to.starts_with(std::string(kFolder) + "/gen-");
}
bool is_removal(const MemoryFiles::Done& done) {
  return done.op == Op::kRename && done.to.starts_with(std::string(kFolder) + "/.del-");
}
bool is_sync_of_shard(const MemoryFiles::Done& done) {
  return done.op == Op::kSync && done.path.find("/shard-") != std::string::npos;
}
bool is_sync_of_manifest(const MemoryFiles::Done& done) {
  return done.op == Op::kSync && done.path.ends_with(checkpoint::kManifestName);
}
bool is_sync_of_index(const MemoryFiles::Done& done) {
  return done.op == Op::kSync && done.path.ends_with(checkpoint::kIndexName);
}
bool is_sync_of_attempt(const MemoryFiles::Done& done) {
  return done.op == Op::kSyncDirectory && done.path.find(".tmp-") != std::string::npos;
}
bool is_sync_of_job(const MemoryFiles::Done& done) {
  return done.op == Op::kSyncDirectory && done.path == kFolder;
}
bool is_sync_of_all_jobs(const MemoryFiles::Done& done) {
  return done.op == Op::kSyncDirectory && done.path == "/c";
}

using Is = bool (*)(const MemoryFiles::Done&);

// A bug that drops all operations for which `what` returns true. If `after` is given, the bug drops such an operation
// only if `after` returns true for the operation right before it.
Explorer::Bug left_out(Is what, Is after = nullptr) {
  return [what, after](MemoryFiles& files, std::size_t i) {
    if (what(files.done(i)) && (after == nullptr || (i > 0 && after(files.done(i - 1))))) files.forget(i);
  };
}
Explorer::Bug done_only_after(Is what, Is later, Is after = nullptr) {
  return [what, later, after](MemoryFiles& files, std::size_t i) {
    if (!what(files.done(i)) || (after != nullptr && !(i > 0 && after(files.done(i - 1))))) return;
    for (std::size_t j = i + 1; j < files.operations(); ++j) {
      if (later(files.done(j))) return files.put_off(i, j);
      if (is_sync_of_all_jobs(files.done(j))) return;
    }
  };
}

TEST(CrashStates, EachPlantedBugIsFound) {
  const std::vector<std::pair<const char*, Explorer::Bug>> bugs = {
      {"shard files aren't synced", left_out(is_sync_of_shard)},
      {"the manifest isn't synced", left_out(is_sync_of_manifest)},
      {"the index isn't synced", left_out(is_sync_of_index)},
      {"the attempt's folder isn't synced", left_out(is_sync_of_attempt)},
      {"the job's folder isn't synced", left_out(is_sync_of_job)},
      {"the job's folder isn't synced after a commit", left_out(is_sync_of_job, is_commit)},
      {"the job's folder isn't synced before the files of a removed checkpoint go",
       left_out(is_sync_of_job, is_removal)},
      {"the folder of all jobs isn't synced", left_out(is_sync_of_all_jobs)},
      {"the commit comes before the sync of a shard's file", done_only_after(is_sync_of_shard, is_commit)},
      {"the commit comes before the sync of the manifest", done_only_after(is_sync_of_manifest, is_commit)},
      {"the commit comes before the sync of its folder", done_only_after(is_sync_of_attempt, is_commit)},
      {"retention comes before the sync of the commit", done_only_after(is_sync_of_job, is_removal, is_commit)},
  };
  for (const auto& [what, bug] : bugs) {
    Explorer explorer(bug);
    std::string found;
    std::uint64_t story = 0;
    while (found.empty() && story < 40) found = explorer.explore(story++);
    EXPECT_NE(found, "") << what;
  }
}

}  // namespace
}  // namespace disttrain::chiefd
