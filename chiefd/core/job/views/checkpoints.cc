#include "chiefd/core/job/views/checkpoints.h"

#include <string>

namespace disttrain::chiefd::views {

bool is_owed_by(const JobFacts& job, const Member& ps) {
  if (!job.attempts.current || job.attempts.current->phase == Attempt::Phase::kCommit) return false;
  for (std::uint32_t s = 0; s < job.generation.owners().size(); ++s)
    if (job.generation.owners()[s].ps == ps && job.attempts.current->written.count(ShardId(s)) == 0) return true;
  return false;
}

std::string folder_problem(const JobFacts& job, Instant now, const std::string& within) {
  const bool hangs = !job.folder.ask_again && now - job.folder.asked > job.setup.timeouts.silent;
  if (!job.folder.error.empty() && !hangs)
    return "the job's checkpoint folder couldn't be used" + within + ": " + job.folder.error;
  return job.setup.config().checkpoint.directory + " couldn't be read" + within + ": does its file system hang?" +
         (job.folder.error.empty() ? "" : " Before that: " + job.folder.error);
}

// Returns the error of a job that had checkpoints and can't use any of them. The job fails, because beginning again
// with initial values would throw the training away, and the operator may have a copy of the damaged file.
Error nothing_left(const JobFacts& job, const FolderAnswer& answer) {
  std::string what = answer.broken.empty() ? job.folder.newest->path + " is gone" : answer.broken.back();
  if (!job.folder.damage.empty()) what = job.folder.damage;
  const std::string folder = job.setup.config().checkpoint.directory + "/" + job.setup.name();
  return Error{ErrorCode::kData, "no checkpoint in " + folder + " can be used any more (" + what +
                                     "): to go on, put a good copy of a checkpoint there and submit the job again; to "
                                     "begin anew, set checkpoint.restore to \"none\""};
}

std::string why_it_ends(const JobFacts& job) {
  return job.condition.is_stopping() ? job.condition.end_reason() + "; " : "";
}

Error no_final_checkpoint(const JobFacts& job, const std::string& why) {
  return Error{ErrorCode::kFailed, "trained " + std::to_string(job.progress.step().value) +
                                       " steps, but the last checkpoint couldn't be taken: " + why};
}

}  // namespace disttrain::chiefd::views
