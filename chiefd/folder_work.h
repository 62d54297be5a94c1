// What the chief does with a job's checkpoint folder, one thing after the other. No thread of its own: the shell runs
// it on one, the simulator inline.
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
  // `files` outlives it. `wall_seconds`: Unix time, for manifests.
  JobFolder(checkpoint::Files& files, std::int64_t (*wall_seconds)()) : files_(files), wall_seconds_(wall_seconds) {}

  // Of OpenFolder, FindNewest and SetAside: an answer without `newest` names in `broken` whatever the folder has had
  // and can't be used, those that were set aside long ago too. So with nothing named, there never was a checkpoint.
  Result<FolderAnswer> carry_out(const OpenFolder& work);
  Result<FolderAnswer> carry_out(const FindNewest& work);
  Result<FolderAnswer> carry_out(const FindInit& work);
  Result<FolderAnswer> carry_out(const SetAside& work);
  Result<FolderAnswer> carry_out(const BeginAttempt& work);
  Result<FolderAnswer> carry_out(const CommitAttempt& work);

 private:
  // Makes the folder ready for commits, and known to the ps tasks by the number.
  Status mark(std::uint64_t token) const;
  // As mark(); but where only writing fails, what is there can still be restored, and attempts at checkpoints will say
  // what is wrong. Returns the number that is in the folder.
  Result<std::uint64_t> mark_or_read(std::uint64_t token) const;
  Result<FolderAnswer> find(std::uint64_t mark, const std::string& committed) const;
  Status check_mounted(const std::string& folder, const std::string& committed) const;

  checkpoint::Files& files_;
  std::int64_t (*const wall_seconds_)();
  std::string directory_;
  std::string path_;
  std::unique_ptr<checkpoint::InputFile> lock_;
  std::unique_ptr<checkpoint::InputFile> init_lock_;  // of the checkpoint that the first parameters are from
  std::set<std::string> damaged_;                     // that couldn't be set aside: nothing can be written there
};

}  // namespace disttrain::chiefd
