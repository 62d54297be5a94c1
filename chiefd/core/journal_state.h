// What the chief's journal says: records in the order in which they were decided, and the state that they add up to.
// Never per-step data. chiefd/journal_file.h keeps them on a disk.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "common/ids.h"
#include "common/messages/control.h"

namespace disttrain::chiefd {

enum class JobState : std::uint8_t {
  kQueued,
  kStarting,
  kRunning,
  kPaused,
  kEvaluating,
  kStopping,
  kFinished,
  kFailed,
  kStopped,
};
// "queued", "starting", ...
const char* to_string(JobState state);
// finished, failed or stopped.
bool is_final(JobState state);

// A chief has started: `journal` is drawn once, when the journal is made.
struct TermRecord {
  JournalId journal;
  Term term;
  bool operator==(const TermRecord&) const = default;
};

struct SubmittedRecord {
  JobId job;
  std::string name;
  std::string toml;
  std::uint64_t warmup_steps = 0;
  bool operator==(const SubmittedRecord&) const = default;
};

struct StateRecord {
  JobId job;
  JobState state = JobState::kQueued;
  std::string reason;
  bool operator==(const StateRecord&) const = default;
};

struct GenerationRecord {
  JobId job;
  Generation generation;
  bool operator==(const GenerationRecord&) const = default;
};

// `borrowers`: one worker (async, ssp) or the roster in rank order (sync).
struct GrantRecord {
  JobId job;
  Generation generation;
  std::vector<Member> borrowers;
  Lease lease;
  bool operator==(const GrantRecord&) const = default;
};

using Record = std::variant<TermRecord, SubmittedRecord, StateRecord, GenerationRecord, GrantRecord>;

struct JournaledJob {
  SubmittedRecord submitted;
  JobState state = JobState::kQueued;
  std::string reason;
  Generation generation;
  bool operator==(const JournaledJob&) const = default;
};

// Jobs that ended are remembered only up to this number.
inline constexpr std::size_t kMaxEndedJobs = 100;

struct JournalState {
  JournalId journal;  // 0: nothing has been written yet
  Term term;
  JobId last_job;  // the highest number ever given
  std::map<JobId, JournaledJob> jobs;
  bool operator==(const JournalState&) const = default;
};

// Records of jobs that aren't known change nothing: theirs was forgotten.
void apply(JournalState& state, const Record& record);

// The shortest list of records that adds up to `state` (without grants: a restarted chief lends nothing of old
// generations). The journal is rewritten so at each start.
std::vector<Record> compacted(const JournalState& state);

}  // namespace disttrain::chiefd
