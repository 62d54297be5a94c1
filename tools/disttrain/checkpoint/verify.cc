// disttrain checkpoint verify PATH: checks every byte of a checkpoint against the checksums in its manifest.
#include <iostream>

#include "common/checkpoint/disk_files.h"
#include "common/checkpoint/shard_file.h"
#include "common/daemon/startup.h"
#include "tools/disttrain/checkpoint/checkpoint.h"
#include "tools/disttrain/json.h"
#include "tools/disttrain/units.h"
#include "tools/disttrain/verbs.h"

namespace disttrain::cli {

namespace {

constexpr char kVerifyProgram[] = "disttrain checkpoint verify";

struct Verified {
  std::string path;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::vector<Error> problems;
  bool is_gone = false;  // retention has removed the checkpoint, or is removing it now
};

// Turns kNoInput into kData, because a checkpoint that lacks a file is damaged. `verify` ends with kNoInput only if
// there is no checkpoint.
Error as_damage(Error error) {
  if (error.code == ErrorCode::kNoInput) error.code = ErrorCode::kData;
  return error;
}

Verified verify(checkpoint::Files& files, const std::string& path) {
  Verified verified{path, 0, 0, {}, false};
  const auto open = checkpoint::open_checkpoint(files, path);
  if (!open) {
    const bool is_there = files.list(path).has_value();
    const bool has_manifest = files.open(path + "/" + checkpoint::kManifestName).has_value();
    verified.is_gone = open.error().code == ErrorCode::kNoInput && (!is_there || has_manifest);
    if (!verified.is_gone) verified.problems.push_back(as_damage(open.error()));
    return verified;
  }
  for (const checkpoint::FileEntry& entry : open->manifest.files) {
    ++verified.files;
    verified.bytes += entry.bytes;
    const Status well = checkpoint::verify_file(files, path, entry);
    if (!well) verified.problems.push_back(as_damage(well.error()));
  }
  return verified;
}

Json to_json(const Verified& verified) {
  Json problems = Json::array();
  for (const Error& problem : verified.problems) problems.push_back(problem.message);
  return {{"path", verified.path},
          {"well", problems.empty()},
          {"files", verified.files},
          {"bytes", verified.bytes},
          {"problems", problems}};
}

void print(const Verified& verified) {
  if (verified.problems.empty())
    std::cout << verified.path << " is valid: " << verified.files << (verified.files == 1 ? " file, " : " files, ")
              << bytes_text(verified.bytes) << '\n';
  for (const Error& problem : verified.problems) daemon::report(kVerifyProgram, problem);
}

// The exit code: 65 if a checkpoint is damaged, else the code of the first problem, else 0.
int code_of(const std::vector<Verified>& all) {
  int exit_code = 0;
  for (const Verified& verified : all)
    for (const Error& problem : verified.problems)
      if (exit_code == 0 || problem.code == ErrorCode::kData) exit_code = static_cast<int>(problem.code);
  return exit_code;
}

}  // namespace

int checkpoint_verify(const CheckpointOptions& options) {
  checkpoint::DiskFiles files;
  const std::string path = absolute_path(options.path);
  const auto found = checkpoints_in(files, path);
  if (!found) return daemon::report(kVerifyProgram, found.error());
  std::vector<Verified> all;
  for (const checkpoint::Found& one : *found) {
    Verified verified = verify(files, one.path);
    if (verified.is_gone) continue;
    if (!options.json) print(verified);
    all.push_back(std::move(verified));
  }
  if (all.empty())
    return daemon::report(kVerifyProgram,
                          Error{ErrorCode::kNoInput, "no checkpoint in " + path +
                                                         ": expected a checkpoint's folder, a job's folder, or "
                                                         "the directory above it"});
  if (options.json) {
    Json json = {{"well", code_of(all) == 0}, {"checkpoints", Json::array()}};
    for (const Verified& verified : all) json["checkpoints"].push_back(to_json(verified));
    std::cout << line_of(json) << '\n';
  }
  return code_of(all);
}

}  // namespace disttrain::cli
