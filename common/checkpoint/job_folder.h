// The checkpoints of one job: a folder <checkpoint.directory>/<job> with one folder for each, "gen-G-step-S". The
// folder is the truth: everything with such a name was committed by one rename and is whole.
//
//   begin_attempt(files, folder, generation, 7);                        the chief; then on every ps:
//     write_shard(files, attempt_path(folder, generation, 7), ...); files.sync_directory(attempt_path(...));
//   commit(files, folder, manifest);                                    the chief, with what the ps tasks reported
//   retain(files, folder, policy);
//
// No call waits for a lock. The next attempt removes what a crash leaves behind (".tmp-", ".del-").
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

// Creates the folder if it is missing, and locks it: a second job on it is an error (kConfig) until the lock is
// dropped. Writes nothing if the job has had the folder before.
Result<std::unique_ptr<InputFile>> lock_job_folder(Files& files, const std::string& directory, const std::string& job);

// The chief and every ps must see the same folder. The chief writes a random number into it; each ps checks that the
// number is there (kConfig: it isn't; kFailed: it can't be read). Until the new number is written, and after a crash
// meanwhile, the old one is there. If the folder has become read-only, the chief reads the old number, and each ps
// looks for that.
Status write_token(Files& files, const std::string& job_folder, std::uint64_t token);
Result<std::uint64_t> read_token(Files& files, const std::string& job_folder);
Status check_token(Files& files, const std::string& job_folder, std::uint64_t token);

// Newest first: by generation, then by step, so that a branch that was rolled back never wins. Empty if the folder is
// missing.
Result<std::vector<Found>> list_checkpoints(Files& files, const std::string& job_folder);

// A manifest that was read, and the lock that keeps retention from removing its checkpoint meanwhile.
struct OpenCheckpoint {
  std::string path;
  Manifest manifest;
  std::unique_ptr<InputFile> lock;
};
// kNoInput: the checkpoint is gone or being removed. kData, kConfig: parse_manifest().
Result<OpenCheckpoint> open_checkpoint(Files& files, const std::string& path);

// The checkpoint that `path` names: its own folder, or a job's folder for the newest in it. Changes nothing: if the
// newest manifest can't be read, that is an error, and the checkpoint stays. kNoInput: there is none.
Result<OpenCheckpoint> open_named(Files& files, const std::string& path);

// The newest checkpoint with a readable manifest. Newer ones without are named in `broken` and set aside, if the folder
// can be written. Skips the paths of `damaged`. None: there is no checkpoint. kConfig: the newest has a newer format;
// it isn't skipped.
Result<std::optional<OpenCheckpoint>> open_newest(Files& files, const std::string& job_folder,
                                                  std::vector<std::string>& broken,
                                                  const std::set<std::string>& damaged = {});

// Renames a checkpoint that doesn't verify, so that it no longer counts as one. Only a person removes it: it may show
// what went wrong with the disk.
Status set_aside(Files& files, const std::string& path);
// Paths of the checkpoints that were renamed because they didn't verify (set_aside()). Empty if the folder is missing.
Result<std::vector<std::string>> list_set_aside(Files& files, const std::string& job_folder);
bool is_set_aside(Files& files, const std::string& path);

std::string attempt_path(const std::string& job_folder, Generation generation, std::uint64_t attempt);
// Removes what older attempts left, and makes the attempt's folder.
Status begin_attempt(Files& files, const std::string& job_folder, Generation generation, std::uint64_t attempt);
// Writes the index and the manifest, syncs, and renames the attempt's folder: this is the commit. Returns the
// checkpoint's path. If a checkpoint of this generation and step exists already and verifies, it stays and the attempt
// is removed; if it doesn't verify, it is set aside.
//
// Example, a crash at each point of a commit to gen-3-step-40:
// 1. Before the rename: only ".tmp-..." is there; restore takes the checkpoint before, and the next attempt removes the
//    folder.
// 2. After the rename, before its sync: after the crash either name may be there. Both hold the same whole files.
// 3. After the sync of the parent folder: gen-3-step-40 is there for good.
Result<std::string> commit(Files& files, const std::string& job_folder, Manifest manifest);

struct Retention {
  std::uint32_t keep = 1;              // number of newest ones to keep, at least 1
  std::uint64_t keep_every_steps = 0;  // keep for ever the first at or after each multiple; 0: none
  // Path of the checkpoint that was committed a moment ago, written with checksums and synced. It counts as good if its
  // files have their sizes: reading it again would cost training as much as a tenth of writing it.
  std::string just_committed;
};
// Removes checkpoints that needn't be kept, but never one that is being read, and never the last that verifies; for
// that it reads the newest ones whole. Returns the removed paths.
Result<std::vector<std::string>> retain(Files& files, const std::string& job_folder, const Retention& retention);

}  // namespace disttrain::checkpoint
