// When a job takes a checkpoint, and when an attempt is committed or given up.
#pragma once

#include "chiefd/core/job/facts/job_facts.h"
#include "chiefd/core/job/rules/verdict.h"

namespace disttrain::chiefd::rules {

// Whether an attempt begins now (TakeCheckpoint, TakeLastCheckpoint), or the one under way has taken too long
// (GiveUpAttempt).
Verdict next_attempt(const JobFacts& job, const Tasks& tasks, Instant now);
// Whether the shards' files make a checkpoint: Commit, GiveUpAttempt, or Stay if files are missing. If no worker is
// left to mark, a shard may cut before another ps has reserved its space. So the chief commits only in phase kCut,
// which begins when every ps has reserved its space. REQUIRES: an attempt is under way.
Verdict written(const JobFacts& job);
// In the stages kFolder and kFind: the chief has read the folder. Fails the job if it had checkpoints and can't use
// any.
Verdict folder_read(const JobFacts& job, const FolderAnswer& answer);
// The folder can't be opened or read. Fails the job, or stays: the chief tries again.
Verdict folder_failed(const JobFacts& job, const Error& error);

}  // namespace disttrain::chiefd::rules
