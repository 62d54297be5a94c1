// Plants one bug after the other into the cores and looks for a seed that breaks a law: a law that no bug can break is
// no law. See common/mutant.h.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>
#include <string>

#include "common/mutant.h"
#include "tests/sim/simulation.h"

namespace disttrain::sim {
namespace {

struct Planted {
  Mutant mutant;
  const char* name;
  const char* what;
};

constexpr Planted kAll[] = {
    {Mutant::kNoDeduplication, "no-deduplication", "a frame that comes again is applied again"},
    {Mutant::kShortDeduplicationKey, "short-deduplication-key", "frames are told apart by 8 bits"},
    {Mutant::kNoIncarnation, "no-incarnation", "a shard knows workers by their place alone"},
    {Mutant::kNoFence, "no-fence", "a shard says that it has fenced a worker, and hasn't"},
    {Mutant::kEarlyAcknowledgement, "early-acknowledgement", "sync: a push is answered before its step"},
    {Mutant::kParticipantsPerShard, "participants-per-shard", "sync: each shard decides of whom a step is made"},
    {Mutant::kStaleStagedAccepted, "stale-staged-accepted", "sync: the pacer takes reports of other steps"},
    {Mutant::kVoidPushesCount, "void-pushes-count", "sync: records that were lent to an old roster count"},
    {Mutant::kLatePushVisits, "late-push-visits", "sync: the records of a late push are entered as visited"},
    {Mutant::kLooseBound, "loose-bound", "ssp: the bound is one too many"},
    {Mutant::kLostConnectionFreesOthers, "lost-connection-frees-others", "ssp: who reconnects holds nobody"},
    {Mutant::kCutAtFirstMark, "cut-at-first-mark", "async: a shard cuts when one worker has marked"},
    {Mutant::kCutBeforeCommitCounts, "cut-before-commit", "sync: shards cut before the pacer's step, not after"},
    {Mutant::kHoldForgotten, "hold-forgotten", "a shard goes on after the cut that is the last of its generation"},
    {Mutant::kMeanOfMeans, "mean-of-means", "sync: batches of different sizes weigh the same"},
    {Mutant::kRestoredLedgerLost, "restored-ledger-lost", "a checkpoint's ledger isn't taken up"},
    {Mutant::kTermNotDurable, "term-not-durable", "the chief listens before its term is written"},
    {Mutant::kGenerationNotDurable, "generation-not-durable", "shards are made before the generation is written"},
    {Mutant::kRosterNotDurable, "roster-not-durable", "the pacer hears of a roster before it is written"},
    {Mutant::kGrantNotDurable, "grant-not-durable", "a lease is sent before it is written"},
    {Mutant::kRestartUnseen, "restart-unseen", "a task that restarts quickly isn't seen to have died"},
    {Mutant::kLentBeforeFence, "lent-before-fence", "a lost worker's records are lent again at once"},
    {Mutant::kWholeLeaseGivenBack, "whole-lease-given-back", "they are lent again though they were visited"},
    {Mutant::kCursorOfAnotherStep, "cursor-of-another-step", "a checkpoint has the pacer's newest ledger"},
    {Mutant::kOldGenerationHeard, "old-generation-heard", "the chief takes messages of older generations"},
    {Mutant::kNoRollbackOfSurvivors, "reclaims-anything", "a new chief takes tasks up that hold nothing"},
    {Mutant::kMixedVersions, "mixed-versions", "sync: parameters of two steps are computed from"},
    {Mutant::kArrivalAssumed, "arrival-assumed", "what was sent before a connection broke isn't sent again"},
    {Mutant::kFilesNotSynced, "files-not-synced", "a shard's file isn't synced"},
    {Mutant::kCommitNotSynced, "commit-not-synced", "the folder isn't synced after a commit"},
    {Mutant::kLastOneRemoved, "last-one-removed", "retention doesn't keep the newest"},
};

// What the child that looks for a seed tells; it may die of a CHECK, which is a law, too.
struct Progress {
  std::uint64_t seed = 0;
  bool caught = false;
  char law[160] = {};
};

bool holds(Mutant mutant, std::uint64_t seed, std::string& violation) {
  planted_mutant = mutant;
  violation = simulate(seed, false).violation;
  planted_mutant = Mutant::kNone;
  return violation.empty();
}

void look(const Planted& planted, std::uint64_t end, Progress& progress) {
  for (progress.seed = 0; progress.seed < end; ++progress.seed) {
    std::string violation;
    if (holds(planted.mutant, progress.seed, violation)) continue;
    // Any seed may show what is wrong without it, too.
    std::string without;
    if (!holds(Mutant::kNone, progress.seed, without)) continue;  // not this bug's doing
    std::snprintf(progress.law, sizeof(progress.law), "%s", violation.c_str());
    progress.caught = true;
    return;
  }
}

bool show(const Planted& planted, std::uint64_t end, Progress& progress) {
  progress = Progress();
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    std::freopen("/dev/null", "w", stderr);
    look(planted, end, progress);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  const bool died = !WIFEXITED(status);
  const bool caught = progress.caught || died;
  std::printf("%-30s %-62s %8s  %s\n", planted.name, planted.what,
              caught ? std::to_string(progress.seed).c_str() : "never", died ? "a CHECK in the code" : progress.law);
  return caught;
}

}  // namespace
}  // namespace disttrain::sim

int main(int argc, char** argv) {
  using disttrain::sim::kAll;
  CLI::App app("Plants bugs and shows the first seed whose laws they break", "mutants");
  std::uint64_t seeds = 20000;
  std::string only;
  app.add_option("--seeds", seeds, "of each mutant at most so many");
  app.add_option("--only", only, "this mutant alone");
  CLI11_PARSE(app, argc, argv);
  void* const shared =
      ::mmap(nullptr, sizeof(disttrain::sim::Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 2;
  int missed = 0;
  std::printf("%-30s %-62s %8s  %s\n", "mutant", "", "seed", "law");
  for (const auto& planted : kAll) {
    if (!only.empty() && only != planted.name) continue;
    missed += show(planted, seeds, *static_cast<disttrain::sim::Progress*>(shared)) ? 0 : 1;
  }
  std::printf("%zu mutants, %d not caught\n", std::size(kAll), missed);
  return missed == 0 ? 0 : 1;
}
