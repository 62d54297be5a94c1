// The checkpoints of one job: a folder <checkpoint.directory>/<job> with one folder for each, "gen-G-step-S". The
// folder is the truth: whatever is in it with that name was committed by one rename and is whole.
//
//   begin_attempt(files, folder, generation, 7);                        the chief; then on every ps:
//     write_shard(files, attempt_path(folder, generation, 7), ...); files.sync_directory(attempt_path(...));
//   commit(files, folder, manifest);                                    the chief, with what the ps tasks reported
//   retain(files, folder, policy);
//
// Nothing here waits for locks. What a crash leaves behind (".tmp-", ".del-") the next attempt clears away.
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

// A checkpoint by its name.
struct Found {
  Generation generation;
  Step step;
  std::string path;
};

// "gen-3-step-00000000000000012000".
std::string checkpoint_name(Generation generation, Step step);

// Makes the folder where it is missing, and holds it: a second job on it is an error (kConfig) until the lock is
// dropped. Writes nothing where the job has had it before.
Result<std::unique_ptr<InputFile>> lock_job_folder(Files& files, const std::string& directory, const std::string& job);

// The folder must be one that the chief and every ps see: the chief puts a random number into it, which each ps finds
// there, or says that it doesn't (kConfig), or can't be read (kFailed). Until it is there, and after a crash meanwhile,
// the one before is: where nothing can be written any more, the chief reads that, and each ps looks for it.
Status write_token(Files& files, const std::string& job_folder, std::uint64_t token);
Result<std::uint64_t> read_token(Files& files, const std::string& job_folder);
Status check_token(Files& files, const std::string& job_folder, std::uint64_t token);

// Newest first: by generation, then by step, so that a branch that was rolled back never wins. No such folder: none.
Result<std::vector<Found>> list_checkpoints(Files& files, const std::string& job_folder);

// A manifest that was read, and the lock that keeps retention from removing its checkpoint meanwhile.
struct OpenCheckpoint {
  std::string path;
  Manifest manifest;
  std::unique_ptr<InputFile> lock;
};
// kNoInput: it is gone, or going. kData, kConfig: parse_manifest().
Result<OpenCheckpoint> open_checkpoint(Files& files, const std::string& path);

// The one that somebody names: its own folder, or a job's, which means its newest. Changes nothing: a newest one whose
// manifest can't be read is an error, and stays where it is. kNoInput: there is none.
Result<OpenCheckpoint> open_named(Files& files, const std::string& path);

// The newest whose manifest can be read; those before it that can't are named in `broken` and set aside, unless nothing
// can be written there. Paths of `damaged` are passed over. None: there is none. kConfig: the newest is of a newer
// format, which isn't passed over.
Result<std::optional<OpenCheckpoint>> open_newest(Files& files, const std::string& job_folder,
                                                  std::vector<std::string>& broken,
                                                  const std::set<std::string>& damaged = {});

// It doesn't verify: it is kept under another name, and no longer a checkpoint. Nothing removes it but a person, who
// may want to see what went wrong with the disk.
Status set_aside(Files& files, const std::string& path);
// Paths of those that were set aside. No such folder: none.
Result<std::vector<std::string>> list_set_aside(Files& files, const std::string& job_folder);
bool is_set_aside(Files& files, const std::string& path);

std::string attempt_path(const std::string& job_folder, Generation generation, std::uint64_t attempt);
// Clears away what older attempts left, and makes the attempt's folder.
Status begin_attempt(Files& files, const std::string& job_folder, Generation generation, std::uint64_t attempt);
// Writes the index and the manifest, syncs, and renames the attempt's folder: that is the commit. Returns the path of
// the checkpoint. Where one of that generation and step is there already and verifies, it stays and the attempt goes;
// one that doesn't is set aside.
Result<std::string> commit(Files& files, const std::string& job_folder, Manifest manifest);

struct Retention {
  std::uint32_t keep = 1;              // newest ones, at least 1
  std::uint64_t keep_every_steps = 0;  // the first at or after each multiple stays for ever; 0: none
  // Its path: written with checksums, synced and committed a moment ago. It is taken for good if its files have their
  // sizes; reading it whole again would cost training as much as a tenth of writing it.
  std::string just_committed;
};
// Removes what needn't be kept: never one that is being read, and never the last that verifies, for which it reads the
// newest ones whole. Returns the paths that it removed.
Result<std::vector<std::string>> retain(Files& files, const std::string& job_folder, const Retention& retention);

}  // namespace disttrain::checkpoint
