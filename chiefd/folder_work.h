// The chief's work on a job's checkpoint folder, one operation at a time. This class has no thread of its own: the
// shell calls it on the thread of FolderKeeper, and the simulator calls it directly.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "chiefd/core/events.h"
#include "common/checkpoint/files.h"
#include "common/checkpoint/manifest.h"
#include "common/program/package.h"
#include "common/result.h"

namespace disttrain::chiefd {

// The file in the job's folder with the parameters of the best checkpoint (evaluate.keep_best).
inline constexpr char kBestName[] = "best.safetensors";

class JobFolder {
 public:
  // `files` must outlive this object. `wall_seconds` returns the Unix time, which goes into manifests.
  JobFolder(checkpoint::Files& files, std::int64_t (*wall_seconds)()) : files_(files), wall_seconds_(wall_seconds) {}

  // OpenFolder, FindNewest and SetAside also look for the newest checkpoint that can be used. If there is none,
  // `newest` of the answer is empty, and `broken` names checkpoints that the folder has had but that can't be used,
  // even if they were set aside long ago. If `broken` is empty as well, the folder has never had a checkpoint.
  Result<FolderAnswer> carry_out(const OpenFolder& work);
  Result<FolderAnswer> carry_out(const FindNewest& work);
  Result<FolderAnswer> carry_out(const FindInit& work);
  Result<FolderAnswer> carry_out(const SetAside& work);
  Result<FolderAnswer> carry_out(const BeginAttempt& work);
  Result<FolderAnswer> carry_out(const CommitAttempt& work);
  Result<FolderAnswer> carry_out(const KeepBest& work);

 private:
  // Prepares the folder for commits, and writes `token` into it. A ps that finds this token knows that it sees the same
  // folder as the chief.
  Status mark(std::uint64_t token);
  // Like mark(), but a folder that the chief can only read is no error: the job can still be restored from it, and each
  // attempt to take a checkpoint reports what is wrong. Returns the token that the folder holds.
  Result<std::uint64_t> mark_or_read(std::uint64_t token);
  // Marks a folder whose token is gone. Returns what happened to the folder, or "".
  std::string mark_again();
  // Opens the job's step program if it isn't open. Returns why that can't be done, or "".
  std::string open_program(const std::string& path);
  // Writes what the checkpoint keeps of the program, and adds the file to the manifest. Returns why nothing is kept, or
  // "".
  Result<std::string> keep_program(const CommitAttempt& work, checkpoint::Manifest& manifest);
  // `columns` are those of the job's data; "": the checkpoint's columns don't matter.
  Result<FolderAnswer> find(std::uint64_t mark, const std::string& committed, const std::string& columns);
  // The checkpoints in the folder, for FolderAnswer::kept. None if the folder can't be listed, or if it isn't the one
  // that this chief has marked: an empty mount point in its place doesn't mean that the checkpoints are gone.
  std::optional<std::vector<KeptCheckpoint>> list() const;
  Status export_best(const KeepBest& work) const;
  // `was_used`: the job has a checkpoint in the folder, so it knows its evaluations from the journal.
  Status read_evaluations(FolderAnswer& answer, bool was_used) const;
  Status keep_evaluations(KeptEvaluations kept, const std::string& exported) const;
  Status check_mounted(const std::string& folder, const std::string& committed) const;

  checkpoint::Files& files_;
  std::int64_t (*const wall_seconds_)();
  std::string directory_;
  std::string path_;
  std::uint64_t token_ = 0;  // the number in the folder, as this chief has written or read it last
  std::unique_ptr<checkpoint::InputFile> lock_;
  // The job's step program. The file stays open, so each checkpoint keeps the same program, even if another file takes
  // its place.
  std::optional<program::Package> program_;
  // While this lock is held, retention doesn't remove the checkpoint that checkpoint.init_from names.
  std::unique_ptr<checkpoint::InputFile> init_lock_;
  // A work that fails keeps here what it has set aside. The next answer tells it.
  std::vector<std::string> strays_;
  std::vector<std::string> broken_;
  // Damaged checkpoints that the chief couldn't set aside, because it may not write to the folder.
  std::set<std::string> damaged_;
};

}  // namespace disttrain::chiefd
