// The chief's work on a job's checkpoint folder, one operation at a time. Has no thread of its own: the shell runs it
// on one, the simulator inline.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "chiefd/core/events.h"
#include "common/checkpoint/files.h"
#include "common/result.h"

namespace disttrain::chiefd {

class JobFolder {
 public:
  // `files` outlives this. `wall_seconds`: Unix time, for manifests.
  JobFolder(checkpoint::Files& files, std::int64_t (*wall_seconds)()) : files_(files), wall_seconds_(wall_seconds) {}

  // OpenFolder, FindNewest and SetAside: an answer without `newest` names in `broken` every checkpoint that the folder
  // has had and that can't be used, even if it was set aside long ago. If `broken` is empty too, there never was a
  // checkpoint.
  Result<FolderAnswer> carry_out(const OpenFolder& work);
  Result<FolderAnswer> carry_out(const FindNewest& work);
  Result<FolderAnswer> carry_out(const FindInit& work);
  Result<FolderAnswer> carry_out(const SetAside& work);
  Result<FolderAnswer> carry_out(const BeginAttempt& work);
  Result<FolderAnswer> carry_out(const CommitAttempt& work);

 private:
  // Prepares the folder for commits. By `token` in it, the ps tasks recognise the folder as the chief's.
  Status mark(std::uint64_t token) const;
  // As mark(), but a folder that can only be read is no error: a restore still works, and attempts at checkpoints
  // report what is wrong. Returns the token that is in the folder.
  Result<std::uint64_t> mark_or_read(std::uint64_t token) const;
  Result<FolderAnswer> find(std::uint64_t mark, const std::string& committed) const;
  Status check_mounted(const std::string& folder, const std::string& committed) const;

  checkpoint::Files& files_;
  std::int64_t (*const wall_seconds_)();
  std::string directory_;
  std::string path_;
  std::unique_ptr<checkpoint::InputFile> lock_;
  std::unique_ptr<checkpoint::InputFile> init_lock_;  // of the checkpoint that checkpoint.init_from names
  std::set<std::string> damaged_;                     // couldn't be set aside, because the folder can't be written
};

}  // namespace disttrain::chiefd
