// Plants bugs into the cores, one after the other, and searches for a seed in which the bug breaks a law. If no bug can
// break a law, the check of this law is worthless. See common/mutant.h.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <set>
#include <sstream>
#include <string>

#include "common/mutant.h"
#include "tests/sim/simulation.h"

namespace disttrain::sim {
namespace {

struct Planted {
  Mutant mutant;
  const char* name;
  const char* what;
  const char* laws;  // the laws that the bug breaks, such as "I7 I11"; other violations don't count
  // The search tries this seed first, because the bug once broke a law in it. A change of the cores makes such seeds
  // stale, and the search longer: the last line that is printed says how long.
  std::uint64_t likely = 0;
};

constexpr Planted kAll[] = {
    {Mutant::kNoDeduplication, "no-deduplication", "a frame that arrives twice is applied twice", "I5 I6 I11", 125},
    {Mutant::kShortDeduplicationKey, "short-deduplication-key", "a shard compares only 8 bits of sequence numbers",
     "I5 I6"},
    {Mutant::kNoIncarnation, "no-incarnation", "a shard takes a new process of a worker for the old one", "I3 I5 I6",
     1966},
    {Mutant::kNoFence, "no-fence", "a shard reports a worker as fenced without fencing it", "I3 I11", 50},
    {Mutant::kEarlyAcknowledgement, "early-acknowledgement", "sync: a push is answered before its step is applied",
     "I5"},
    {Mutant::kParticipantsPerShard, "participants-per-shard",
     "sync: each shard chooses the workers of a step by itself", "I7"},
    {Mutant::kStaleStagedAccepted, "stale-staged-accepted", "sync: the pacer accepts reports about other steps", "I7"},
    {Mutant::kVoidPushesCount, "void-pushes-count", "sync: pushes that were made for an old roster still count",
     "I7 I11"},
    {Mutant::kLatePushVisits, "late-push-visits", "sync: the records of a late push count as visited", "I11"},
    {Mutant::kLooseBound, "loose-bound", "ssp: a worker may get one step too far ahead", "I9"},
    {Mutant::kLostConnectionFreesOthers, "lost-connection-frees-others",
     "ssp: while a worker is disconnected, its clock doesn't count", "I9", 62},
    {Mutant::kCutAtFirstMark, "cut-at-first-mark", "async: a shard cuts after the mark of a single worker", "I10 I17"},
    {Mutant::kCutBeforeCommitCounts, "cut-before-commit", "sync: the pacer cuts before it applies the step", "I13 I17"},
    {Mutant::kHoldForgotten, "hold-forgotten", "a shard applies pushes after the last cut of its generation", "I5",
     1388},
    {Mutant::kMeanOfMeans, "mean-of-means", "sync: batches of different sizes have the same weight", "I7", 21},
    {Mutant::kRestoredLedgerLost, "restored-ledger-lost", "a checkpoint's ledger isn't restored", "I11"},
    {Mutant::kVetoPerShard, "veto-per-shard", "sync: a shard applies a step that isn't finite at another one", "I7"},
    {Mutant::kClipPerShard, "clip-per-shard", "sync: a shard takes its own norm for the global norm", "I7"},
    {Mutant::kStateOfAnyRank, "state-of-any-rank", "async: state is taken from every rank", "I3 I5"},
    {Mutant::kStateInNorm, "state-in-norm", "state counts in the global norm", "I7"},
    {Mutant::kStateScaled, "state-scaled", "sync: clipping scales state like a gradient", "I7"},
    {Mutant::kLowestRankIgnored, "lowest-rank-ignored",
     "sync: state is the mean, although the job takes the lowest rank's", "I7"},
    {Mutant::kLentForEver, "lent-for-ever", "sync: a shard reads what a worker has lent after its channel has ended",
     "I7", 307},
    {Mutant::kOverflowUnseen, "overflow-unseen", "a shard applies an update that overflows", "I5 I7 I34"},
    {Mutant::kDoublesRounded, "doubles-rounded", "float64 parameters are rounded to float32", "I5 I7"},
    {Mutant::kSlotsNotRestored, "slots-not-restored", "a checkpoint's slots aren't restored", "I18", 101},
    {Mutant::kInitIgnored, "init-ignored", "checkpoint.init_from is ignored", "I18"},
    {Mutant::kTermNotDurable, "term-not-durable", "the chief listens before its term is durable", "I1"},
    {Mutant::kGenerationNotDurable, "generation-not-durable", "shards are created before the generation is durable",
     "I1"},
    {Mutant::kRosterNotDurable, "roster-not-durable", "the chief sends the pacer a roster before it is durable", "I1"},
    {Mutant::kGrantNotDurable, "grant-not-durable", "a lease is sent before it is durable", "I12"},
    {Mutant::kRestartUnseen, "restart-unseen", "the chief doesn't notice that a task has restarted quickly", "I4"},
    {Mutant::kClaimDisplaces, "claim-displaces", "a claim takes the place of a process that lives", "I29"},
    {Mutant::kLatePsLost, "late-ps-lost", "a new chief reports a ps that comes back late as lost", "I26", 2468},
    {Mutant::kLentBeforeFence, "lent-before-fence", "a lost worker's records are lent again before it is fenced",
     "I11"},
    {Mutant::kWholeLeaseGivenBack, "whole-lease-given-back", "a lost worker's visited records are lent again", "I11"},
    {Mutant::kCursorOfAnotherStep, "cursor-of-another-step", "a checkpoint has a later ledger than that of its cut",
     "I11 I13"},
    {Mutant::kOldGenerationHeard, "old-generation-heard", "the chief accepts messages of older generations", "L1 CHECK",
     187},
    {Mutant::kNoRollbackOfSurvivors, "reclaims-anything", "a new chief believes that every task still holds the job",
     "L1", 669},
    {Mutant::kGenerationNotRaised, "generation-not-raised", "a rollback doesn't increase the generation", "I1 I2"},
    {Mutant::kAcceptedBeforeDurable, "accepted-before-durable", "a client is told that its job is accepted too early",
     "I28", 2547},
    {Mutant::kEvaluatedWhenOrdered, "evaluated-when-ordered",
     "a checkpoint counts as evaluated when an evaluator has the order", "I31"},
    {Mutant::kEvaluationCountedAgain, "evaluation-counted-again", "an answer that an evaluator repeats counts again",
     "I33", 24},
    {Mutant::kPinForgotten, "pin-forgotten", "retention doesn't learn which checkpoints are the best", "I32"},
    {Mutant::kGrantForgotten, "grant-forgotten", "the journal loses the leases that were granted", "I12"},
    {Mutant::kMixedVersions, "mixed-versions", "sync: a worker computes with parameters of two steps", "I10"},
    {Mutant::kFinalTooEarly, "final-too-early", "a bucket is pushed before the engine has announced its gradient",
     "I10"},
    {Mutant::kValuesNotAwaited, "values-not-awaited", "a shard answers before it has its first values", "I10"},
    {Mutant::kArrivalAssumed, "arrival-assumed", "frames that a broken connection lost aren't sent again", "I6", 478},
    {Mutant::kFilesNotSynced, "files-not-synced", "a shard's file isn't synced", "I14 I15", 144},
    {Mutant::kCommitNotSynced, "commit-not-synced", "the folder isn't synced after a commit", "I15", 201},
    {Mutant::kLastOneRemoved, "last-one-removed", "retention removes the newest checkpoint, too", "I14 I15 I16"},
    {Mutant::kNewestByStep, "newest-by-step", "the checkpoint of the latest step counts as the newest", "I15", 669},
    {Mutant::kDamageUnseen, "damage-unseen", "a restore doesn't verify what it reads", "I18", 1505},
    {Mutant::kJournalEndNotCopied, "journal-end-not-copied", "the journal's newest batch has no copy", "I28", 138},
    {Mutant::kJournalDamageIsCut, "journal-damage-is-cut", "the chief cuts a damaged journal without a report", "I28",
     24},
    {Mutant::kJournalMarkUnread, "journal-mark-unread", "a missing journal is taken for a new one", "I28", 302},
    {Mutant::kJournalNameNotSynced, "journal-name-not-synced", "the name of a rewritten journal isn't synced", "I28",
     111},
    {Mutant::kRecordsLostOnTheWire, "records-lost-on-the-wire",
     "pushes after the first epoch arrive without their records", "I11"},
    {Mutant::kTwoChiefsOfOneTerm, "two-chiefs-of-one-term", "a task obeys two chiefs of the same term", "I25"},
    {Mutant::kOwnOrderForgotten, "own-order-forgotten", "after a rollback a worker's own order begins anew", "I35",
     101},
};

// The search runs in a child process and reports these values to its parent. If a failed DISTTRAIN_CHECK ends the
// child, this counts as a broken law only if the same seed passes without the bug.
struct Progress {
  std::uint64_t seed = 0;
  bool caught = false;
  char law[160] = {};
  char other[160] = {};  // the first violation of a law that isn't in Planted::laws
};

std::string violation_of(Mutant mutant, std::uint64_t seed) {
  planted_mutant = mutant;
  std::string violation = simulate(seed, false).violation;
  planted_mutant = Mutant::kNone;
  return violation;
}

// "I5, I11: ..." is about I5 and I11.
bool is_about(const std::string& violation, const std::string& laws) {
  std::istringstream numbers(violation.substr(0, violation.find(':')));
  std::istringstream expected(laws);
  std::set<std::string> wanted{std::istream_iterator<std::string>(expected), {}};
  for (std::string number; std::getline(numbers, number, ',');) {
    number.erase(0, number.find_first_not_of(' '));
    if (wanted.count(number) != 0) return true;
  }
  return false;
}

void look(const Planted& planted, std::uint64_t end, Progress& progress) {
  for (; progress.seed < end; ++progress.seed) {
    const std::string violation = violation_of(planted.mutant, progress.seed);
    if (violation.empty()) continue;
    // If a seed fails without the bug, too, it proves nothing about the bug.
    if (!violation_of(Mutant::kNone, progress.seed).empty()) continue;
    char* const into = is_about(violation, planted.laws) ? progress.law : progress.other;
    if (into[0] == '\0') std::snprintf(into, sizeof(progress.law), "%s", violation.c_str());
    if (into == progress.other) continue;
    progress.caught = true;
    return;
  }
}

// Runs `work` in a child process. Returns whether a signal ended the child.
template <typename Work>
bool dies(const Work& work) {
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    std::freopen("/dev/null", "w", stderr);
    work();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return !WIFEXITED(status);
}

// Returns true if one of the seeds breaks a law in planted.laws.
bool is_caught(const Planted& planted, std::uint64_t begin, std::uint64_t end, Progress& progress) {
  progress = Progress();
  progress.seed = begin;
  const bool may_die = std::string(planted.laws).find("CHECK") != std::string::npos;
  while (dies([&] { look(planted, end, progress); })) {
    const bool passes = !dies([&] {
      if (!violation_of(Mutant::kNone, progress.seed).empty()) std::abort();
    });
    const bool counts = passes && may_die;
    std::snprintf(counts ? progress.law : progress.other, sizeof(progress.law), "a failed check in the code");
    progress.caught = counts;
    if (counts) break;
    ++progress.seed;  // this crash doesn't count, so the search continues with the next seed
  }
  return progress.caught;
}

// Adds to `tried` how many seeds the search took.
bool show(const Planted& planted, std::uint64_t end, Progress& progress, std::uint64_t& tried) {
  ++tried;
  if (!is_caught(planted, planted.likely, planted.likely + 1, progress)) {
    is_caught(planted, 0, end, progress);
    tried += progress.seed + 1;
  }
  const std::string seed = progress.caught ? std::to_string(progress.seed) : "never";
  std::printf("%-30s %-66s %-10s %8s  %s\n", planted.name, planted.what, planted.laws, seed.c_str(),
              progress.caught ? progress.law : (std::string("but: ") + progress.other).c_str());
  return progress.caught;
}

}  // namespace
}  // namespace disttrain::sim

int main(int argc, char** argv) {
  using disttrain::sim::kAll;
  CLI::App app("Plants bugs, and shows for each the first seed in which it breaks a law", "mutants");
  std::uint64_t seeds = 20000;
  std::string only;
  app.add_option("--seeds", seeds, "how many seeds to try with each mutant");
  std::set<std::string> without;
  app.add_option("--only", only, "tests only the mutant of this name");
  app.add_option("--without", without, "leaves out the mutants of these names");
  CLI11_PARSE(app, argc, argv);
  void* const shared =
      ::mmap(nullptr, sizeof(disttrain::sim::Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 2;
  int missed = 0;
  std::uint64_t tried = 0;
  std::printf("%-30s %-66s %-10s %8s  %s\n", "mutant", "", "laws", "seed", "violation");
  for (const auto& planted : kAll) {
    if ((!only.empty() && only != planted.name) || without.count(planted.name) != 0) continue;
    missed += show(planted, seeds, *static_cast<disttrain::sim::Progress*>(shared), tried) ? 0 : 1;
  }
  std::printf("%zu mutants, %d not caught, %llu seeds tried\n", std::size(kAll), missed,
              static_cast<unsigned long long>(tried));
  return missed == 0 ? 0 : 1;
}
