// Questions about a job's checkpoints and its checkpoint folder. Each is answered from the facts alone.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "chiefd/core/job/facts/job_facts.h"
#include "chiefd/core/job/turn.h"

namespace disttrain::chiefd::views {

// True if this ps still has to write a shard for the current attempt.
bool is_owed_by(const JobFacts& job, const Member& ps);
// Called at a deadline. Returns why the folder hasn't been read yet. `within` goes into that text, for example
// " for 120 s". If the last request to the shell hangs, the text first says so. Then it gives the error of the
// previous request.
std::string folder_problem(const JobFacts& job, Instant now, const std::string& within);
Error nothing_left(const JobFacts& job, const FolderAnswer& answer);
// Returns "stopped by ann; " if a client has stopped the job. Otherwise empty.
std::string why_it_ends(const JobFacts& job);

// Why a job fails that can't take the checkpoint after its last step.
Error no_final_checkpoint(const JobFacts& job, const std::string& why);

}  // namespace disttrain::chiefd::views
