// The checkpoints of one job. The job has the folder <checkpoint.directory>/<job>, and each checkpoint is a folder
// "gen-G-step-S" in it. The names of these folders are the only list of the checkpoints. A folder with such a name is
// complete, because commit() gives it this name after all its files are synced. A checkpoint is intact if all its files
// match the sizes and checksums in its manifest.
//
// The order of calls, for attempt 7 of a generation:
//
//   begin_attempt(files, folder, generation, 7);                        // the chief
//     write_shard(files, attempt_path(folder, generation, 7), ...);     // every ps
//     files.sync_directory(attempt_path(folder, generation, 7));        // every ps
//   commit(files, folder, manifest);                                    // the chief, with the reports of the ps tasks
//   retain(files, folder, policy);                                      // the chief
//
// No call waits for a lock. A crash may leave folders ".tmp-..." and ".del-..."; the next attempt removes them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/checkpoint/files.h"
#include "common/checkpoint/manifest.h"
#include "common/ids.h"
#include "common/result.h"

namespace disttrain::checkpoint {

// A checkpoint's name and path.
struct Found {
  Generation generation;
  Step step;
  std::string path;
};

// "gen-3-step-00000000000000012000".
std::string checkpoint_name(Generation generation, Step step);
// Accepts only names that checkpoint_name() makes. Found::path is empty.
std::optional<Found> parse_checkpoint_name(const std::string& name);

// Creates the job's folder if it is missing, and locks it. Fails with kConfig if another running job has locked it, or
// if the directory or the folder isn't a folder. Destroying the result releases the lock. If the folder has a lock file
// already, this function writes nothing but the file's permissions, and may be unable to write them.
Result<std::unique_ptr<InputFile>> lock_job_folder(Files& files, const std::string& directory, const std::string& job);

// The folder of TensorBoard's files and of traces, in a job's folder.
inline constexpr const char* kCurvesName = "events";

// Something of another kind than ours may have one of our names in a job's folder: a folder ".token", a FIFO
// ".tmp-1-1", a socket ".lock". It would make each attempt to use the name fail, so this function renames it to
// ".stray-...", and what has a checkpoint's name to ".broken-...". It does the same with a link ".tmp-1-1", and with a
// link that leads nowhere. Adds one sentence for each to `said`, also if it fails later. Changes nothing if the folder
// is missing. Fails if such an entry, other than kCurvesName, can't be renamed: with kFailed if a retry may help,
// otherwise with kConfig. `more_files`: the names of the caller's own files in the folder.
Status set_strays_aside(Files& files, const std::string& job_folder, std::vector<std::string>& said,
                        const std::vector<std::string>& more_files = {});

// These functions check that the chief and every ps see the same folder. The chief writes its mark, a number that is
// new for each generation, into the folder; these functions call it the token. Each ps then checks that the token is
// there. check_token() fails with kConfig if another number or none is there, and with kFailed if reading fails.
// write_token() replaces the old token atomically. If the folder has become read-only, the chief reads the old token,
// and each ps checks for that one.
Status write_token(Files& files, const std::string& job_folder, std::uint64_t token);
Result<std::uint64_t> read_token(Files& files, const std::string& job_folder);
Status check_token(Files& files, const std::string& job_folder, std::uint64_t token);

// Lists the newest checkpoint first. A checkpoint of a higher generation is newer. Within a generation, a checkpoint of
// a higher step is newer. So a checkpoint of steps that were rolled back is never the newest. The list is empty if the
// folder is missing.
Result<std::vector<Found>> list_checkpoints(Files& files, const std::string& job_folder);

// An open checkpoint: its manifest, and a lock that keeps retain() from removing the checkpoint.
struct OpenCheckpoint {
  std::string path;
  Manifest manifest;
  std::unique_ptr<InputFile> lock;
};
// Fails with kNoInput if the checkpoint is gone or is being removed, and with the errors of parse_manifest().
Result<OpenCheckpoint> open_checkpoint(Files& files, const std::string& path);

// Opens the checkpoint that a user named by `path`. The path is a checkpoint's folder, or a job's folder, which stands
// for the newest checkpoint in it. Changes nothing on disk, and fails if the manifest of the newest checkpoint can't be
// read. Fails with kNoInput if there is no checkpoint.
Result<OpenCheckpoint> open_named(Files& files, const std::string& path);

// Checks whether a path without a checkpoint is checkpoint.directory itself, which has a folder for each job. Then it
// returns the part of an error that names the newest checkpoint of all jobs, otherwise "". It looks at no more than
// kMostJobFolders entries.
inline constexpr std::size_t kMostJobFolders = 1000;
std::string holds_folders_of_jobs(Files& files, const std::string& path);

// Opens the newest checkpoint with a readable manifest. A newer checkpoint whose manifest is unreadable is set aside,
// and its error is added to `broken`. If it can't be set aside, for example on a read-only file system, its path is
// added to `damaged`. Skips the checkpoints whose paths are in `damaged`. Returns none if no checkpoint is left. Fails
// with kFailed if a checkpoint goes away meanwhile. If it comes to a checkpoint whose format is too new for this
// program, it fails with kConfig instead of skipping that checkpoint.
Result<std::optional<OpenCheckpoint>> open_newest(Files& files, const std::string& job_folder,
                                                  std::vector<std::string>& broken, std::set<std::string>& damaged);

// Renames a damaged checkpoint, so that it no longer counts as a checkpoint. The program never removes it, because it
// may help a person to find out what is wrong with the disk.
Status set_aside(Files& files, const std::string& path);
// Returns the paths of the checkpoints that set_aside() has renamed. The list is empty if the folder is missing.
Result<std::vector<std::string>> list_set_aside(Files& files, const std::string& job_folder);
bool is_set_aside(Files& files, const std::string& path);

std::string attempt_path(const std::string& job_folder, Generation generation, std::uint64_t attempt);
// Removes what older attempts left behind, and creates the folder of this attempt. Leaves everything else alone that
// begins with ".tmp-" or ".del-". What can't be removed, because it isn't what an attempt leaves, is set aside.
Status begin_attempt(Files& files, const std::string& job_folder, Generation generation, std::uint64_t attempt);
// Writes the index and the manifest, syncs them, and renames the attempt's folder. The rename is the commit. Returns
// the path of the checkpoint. If a checkpoint of this generation and step exists already and is intact, it stays and
// the attempt is removed. If the existing checkpoint is damaged, it is set aside.
//
// Example: a crash interrupts a commit to gen-3-step-40.
// - A crash before the rename leaves only ".tmp-...". A restore uses the previous checkpoint, and the next attempt
//   removes the folder.
// - A crash between the rename and the sync of the parent folder leaves one of the two names. The files are complete
//   under either name.
// - A crash after the sync of the parent folder leaves gen-3-step-40.
Result<std::string> commit(Files& files, const std::string& job_folder, Manifest manifest);

struct Retention {
  std::uint32_t keep = 1;  // how many of the newest checkpoints are kept; at least 1
  // the first checkpoint at or after each multiple of this number of steps is kept for ever; 0: none
  std::uint64_t keep_every_steps = 0;
  // Path of the checkpoint that was just committed. It counts as intact if its files have the right sizes, because it
  // was just written with checksums and synced. Writing a checkpoint slows the training down, and reading it again
  // would raise this cost by up to a tenth.
  std::string just_committed;
  std::vector<std::string> pinned{};  // paths of checkpoints that are kept besides those
};
// Removes the checkpoints that the policy doesn't keep. Never removes a checkpoint that a process reads. Always leaves
// one that is intact. To find that one, it reads whole checkpoints, the newest first. If none is intact, it removes
// nothing. If a checkpoint is a link to a folder, it removes the link and leaves the folder. Returns the removed paths.
Result<std::vector<std::string>> retain(Files& files, const std::string& job_folder, const Retention& retention);

}  // namespace disttrain::checkpoint
