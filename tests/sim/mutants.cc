// Plants one bug after the other into the cores and searches for a seed that breaks a law. A law that no bug can break
// checks nothing. See common/mutant.h.
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
  const char* laws;          // that the bug breaks: "I7 I11"; a seed that breaks only other laws doesn't count
  std::uint64_t likely = 0;  // the search tries this seed first; it broke them when this was written
};

constexpr Planted kAll[] = {
    {Mutant::kNoDeduplication, "no-deduplication", "a frame that comes again is applied again", "I5 I6 I11", 421},
    {Mutant::kShortDeduplicationKey, "short-deduplication-key", "frames are told apart by 8 bits", "I5 I6"},
    {Mutant::kNoIncarnation, "no-incarnation", "a shard knows workers by their place alone", "I3 I5 I6"},
    {Mutant::kNoFence, "no-fence", "a shard says that it has fenced a worker, and hasn't", "I3 I11", 1016},
    {Mutant::kEarlyAcknowledgement, "early-acknowledgement", "sync: a push is answered before its step", "I5"},
    {Mutant::kParticipantsPerShard, "participants-per-shard", "sync: each shard decides of whom a step is made", "I7"},
    {Mutant::kStaleStagedAccepted, "stale-staged-accepted", "sync: the pacer takes reports of other steps", "I7"},
    {Mutant::kVoidPushesCount, "void-pushes-count", "sync: records that were lent to an old roster count", "I7 I11"},
    {Mutant::kLatePushVisits, "late-push-visits", "sync: the records of a late push are entered as visited", "I11"},
    {Mutant::kLooseBound, "loose-bound", "ssp: the bound is one too many", "I9"},
    {Mutant::kLostConnectionFreesOthers, "lost-connection-frees-others", "ssp: who reconnects holds nobody", "I9"},
    {Mutant::kCutAtFirstMark, "cut-at-first-mark", "async: a shard cuts when one worker has marked", "I10 I17"},
    {Mutant::kCutBeforeCommitCounts, "cut-before-commit", "sync: shards cut before the pacer's step, not after",
     "I13 I17"},
    {Mutant::kHoldForgotten, "hold-forgotten", "a shard goes on after the cut that is the last of its generation", "I5",
     712},
    {Mutant::kMeanOfMeans, "mean-of-means", "sync: batches of different sizes weigh the same", "I7"},
    {Mutant::kRestoredLedgerLost, "restored-ledger-lost", "a checkpoint's ledger isn't taken up", "I11"},
    {Mutant::kVetoPerShard, "veto-per-shard", "sync: a shard applies a step that another one found not finite", "I7"},
    {Mutant::kClipPerShard, "clip-per-shard", "sync: the global norm is that of one shard", "I7"},
    {Mutant::kSlotsNotRestored, "slots-not-restored", "a checkpoint's slots aren't taken up", "I18"},
    {Mutant::kInitIgnored, "init-ignored", "checkpoint.init_from isn't read", "I18"},
    {Mutant::kTermNotDurable, "term-not-durable", "the chief listens before its term is written", "I1"},
    {Mutant::kGenerationNotDurable, "generation-not-durable", "shards are made before the generation is written", "I1"},
    {Mutant::kRosterNotDurable, "roster-not-durable", "the pacer hears of a roster before it is written", "I1"},
    {Mutant::kGrantNotDurable, "grant-not-durable", "a lease is sent before it is written", "I12"},
    {Mutant::kRestartUnseen, "restart-unseen", "a task that restarts quickly isn't seen to have died", "I4"},
    {Mutant::kClaimDisplaces, "claim-displaces", "whoever claims a place has it, also from one that lives", "I29"},
    {Mutant::kLatePsLost, "late-ps-lost", "a ps that comes back late to a new chief is told as lost", "I26", 2352},
    {Mutant::kLentBeforeFence, "lent-before-fence", "a lost worker's records are lent again at once", "I11"},
    {Mutant::kWholeLeaseGivenBack, "whole-lease-given-back", "they are lent again though they were visited", "I11"},
    {Mutant::kCursorOfAnotherStep, "cursor-of-another-step", "a checkpoint has the pacer's newest ledger", "I11 I13"},
    {Mutant::kOldGenerationHeard, "old-generation-heard", "the chief takes messages of older generations", "L1 CHECK",
     320},
    {Mutant::kNoRollbackOfSurvivors, "reclaims-anything", "a new chief takes tasks up that hold nothing", "L1", 600},
    {Mutant::kGenerationNotRaised, "generation-not-raised", "a rollback keeps its generation's number", "I1 I2"},
    {Mutant::kAcceptedBeforeDurable, "accepted-before-durable", "a client is told of its job before the journal", "I28",
     696},
    {Mutant::kGrantForgotten, "grant-forgotten", "the journal doesn't take up what was lent", "I12"},
    {Mutant::kMixedVersions, "mixed-versions", "sync: parameters of two steps are computed from", "I10"},
    {Mutant::kArrivalAssumed, "arrival-assumed", "what was sent before a connection broke isn't sent again", "I6"},
    {Mutant::kFilesNotSynced, "files-not-synced", "a shard's file isn't synced", "I14 I15"},
    {Mutant::kCommitNotSynced, "commit-not-synced", "the folder isn't synced after a commit", "I15"},
    {Mutant::kLastOneRemoved, "last-one-removed", "retention doesn't keep the newest", "I14 I15 I16"},
    {Mutant::kNewestByStep, "newest-by-step", "the newest checkpoint is the one of the latest step", "I15", 370},
    {Mutant::kDamageUnseen, "damage-unseen", "what is read of a checkpoint isn't verified", "I18"},
    {Mutant::kJournalEndNotCopied, "journal-end-not-copied", "the journal's newest batch has no copy", "I28"},
    {Mutant::kJournalDamageIsCut, "journal-damage-is-cut", "a journal begins with what can be read of it", "I28"},
    {Mutant::kJournalMarkUnread, "journal-mark-unread", "a journal that is missing is taken for new", "I28", 376},
    {Mutant::kJournalNameNotSynced, "journal-name-not-synced", "the name of a rewritten journal isn't synced", "I28",
     236},
    {Mutant::kRecordsLostOnTheWire, "records-lost-on-the-wire", "a push of a later epoch names no records", "I11"},
    {Mutant::kTwoChiefsOfOneTerm, "two-chiefs-of-one-term", "a task obeys two processes of one term", "I25"},
};

// What the child process that searches for a seed reports. A CHECK that ends the child counts as a broken law only if
// the same seed passes without the bug.
struct Progress {
  std::uint64_t seed = 0;
  bool caught = false;
  char law[160] = {};
  char other[160] = {};  // the first violation of another law
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
    // A seed that also fails without the bug proves nothing.
    if (!violation_of(Mutant::kNone, progress.seed).empty()) continue;
    char* const into = is_about(violation, planted.laws) ? progress.law : progress.other;
    if (into[0] == '\0') std::snprintf(into, sizeof(progress.law), "%s", violation.c_str());
    if (into == progress.other) continue;
    progress.caught = true;
    return;
  }
}

// Runs `work` in a child process. True: the child was killed by a signal.
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

// Whether one of the seeds breaks a law that the bug is to break.
bool is_caught(const Planted& planted, std::uint64_t begin, std::uint64_t end, Progress& progress) {
  progress = Progress();
  progress.seed = begin;
  const bool may_die = std::string(planted.laws).find("CHECK") != std::string::npos;
  while (dies([&] { look(planted, end, progress); })) {
    const bool passes = !dies([&] {
      if (!violation_of(Mutant::kNone, progress.seed).empty()) std::abort();
    });
    const bool counts = passes && may_die;
    std::snprintf(counts ? progress.law : progress.other, sizeof(progress.law), "a CHECK in the code");
    progress.caught = counts;
    if (counts) break;
    ++progress.seed;  // the search goes on with the next seed
  }
  return progress.caught;
}

bool show(const Planted& planted, std::uint64_t end, Progress& progress) {
  if (!is_caught(planted, planted.likely, planted.likely + 1, progress)) is_caught(planted, 0, end, progress);
  const std::string seed = progress.caught ? std::to_string(progress.seed) : "never";
  std::printf("%-30s %-66s %-10s %8s  %s\n", planted.name, planted.what, planted.laws, seed.c_str(),
              progress.caught ? progress.law : (std::string("but: ") + progress.other).c_str());
  return progress.caught;
}

}  // namespace
}  // namespace disttrain::sim

int main(int argc, char** argv) {
  using disttrain::sim::kAll;
  CLI::App app("Plants bugs and shows the first seed whose laws they break", "mutants");
  std::uint64_t seeds = 20000;
  std::string only;
  app.add_option("--seeds", seeds, "of each mutant at most so many");
  std::set<std::string> without;
  app.add_option("--only", only, "this mutant alone");
  app.add_option("--without", without, "not these");
  CLI11_PARSE(app, argc, argv);
  void* const shared =
      ::mmap(nullptr, sizeof(disttrain::sim::Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 2;
  int missed = 0;
  std::printf("%-30s %-66s %-10s %8s  %s\n", "mutant", "", "laws", "seed", "violation");
  for (const auto& planted : kAll) {
    if ((!only.empty() && only != planted.name) || without.count(planted.name) != 0) continue;
    missed += show(planted, seeds, *static_cast<disttrain::sim::Progress*>(shared)) ? 0 : 1;
  }
  std::printf("%zu mutants, %d not caught\n", std::size(kAll), missed);
  return missed == 0 ? 0 : 1;
}
