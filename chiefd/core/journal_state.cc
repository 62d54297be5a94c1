#include "chiefd/core/journal_state.h"

#include <algorithm>

namespace disttrain::chiefd {

const char* to_string(JobState state) {
  switch (state) {
    case JobState::kQueued:
      return "queued";
    case JobState::kStarting:
      return "starting";
    case JobState::kRunning:
      return "running";
    case JobState::kPaused:
      return "paused";
    case JobState::kEvaluating:
      return "evaluating";
    case JobState::kStopping:
      return "stopping";
    case JobState::kFinished:
      return "finished";
    case JobState::kFailed:
      return "failed";
    case JobState::kStopped:
      return "stopped";
  }
  return "unknown";
}

bool is_final(JobState state) {
  return state == JobState::kFinished || state == JobState::kFailed || state == JobState::kStopped;
}

namespace {

void forget_oldest_ended(JournalState& state) {
  const auto ended = [](const auto& entry) { return is_final(entry.second.state); };
  if (std::count_if(state.jobs.begin(), state.jobs.end(), ended) <= static_cast<std::ptrdiff_t>(kMaxEndedJobs)) return;
  state.jobs.erase(std::find_if(state.jobs.begin(), state.jobs.end(), ended));
}

struct Applier {
  JournalState& state;

  void operator()(const TermRecord& record) const {
    state.journal = record.journal;
    state.term = std::max(state.term, record.term);
  }
  void operator()(const SubmittedRecord& record) const {
    state.last_job = std::max(state.last_job, record.job);
    state.jobs[record.job].submitted = record;
  }
  void operator()(const StateRecord& record) const {
    // Also when the job itself is forgotten: its number isn't given again.
    state.last_job = std::max(state.last_job, record.job);
    const auto job = state.jobs.find(record.job);
    if (job == state.jobs.end()) return;
    job->second.state = record.state;
    job->second.reason = record.reason;
    if (is_final(record.state)) forget_oldest_ended(state);
  }
  void operator()(const GenerationRecord& record) const {
    const auto job = state.jobs.find(record.job);
    if (job != state.jobs.end()) job->second.generation = std::max(job->second.generation, record.generation);
  }
  void operator()(const GrantRecord&) const {}
};

}  // namespace

void apply(JournalState& state, const Record& record) {
  std::visit(Applier{state}, record);
}

std::vector<Record> compacted(const JournalState& state) {
  std::vector<Record> records;
  if (state.journal.value != 0) records.push_back(TermRecord{state.journal, state.term});
  for (const auto& [id, job] : state.jobs) {
    records.push_back(job.submitted);
    if (job.generation.value != 0) records.push_back(GenerationRecord{id, job.generation});
    if (job.state != JobState::kQueued) records.push_back(StateRecord{id, job.state, job.reason});
  }
  if (state.jobs.empty() ? state.last_job.value != 0 : state.last_job > state.jobs.rbegin()->first)
    records.push_back(StateRecord{state.last_job, JobState::kStopped, "forgotten"});
  return records;
}

}  // namespace disttrain::chiefd
