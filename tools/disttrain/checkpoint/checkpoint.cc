#include "tools/disttrain/checkpoint/checkpoint.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

namespace disttrain::cli {

namespace fs = std::filesystem;

std::string absolute_path(const std::string& path) {
  std::string text = fs::absolute(path).lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

Status check_folder_of(const std::string& out) {
  const fs::path folder = fs::path(out).parent_path();
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored))
    return fail(ErrorCode::kNoInput,
                "can't write " + out + ": there is no folder " + folder.string() + "; make it first");
  // `out` is made beside its place, and then renamed.
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return {};
  return fail(ErrorCode::kNoPermission, "can't write " + out + ": " + std::generic_category().message(errno) +
                                            "; make the folder " + folder.string() +
                                            " writable, or choose another one");
}

Result<std::vector<checkpoint::Found>> checkpoints_in(checkpoint::Files& files, const std::string& folder) {
  const Result<std::vector<std::string>> names = files.list(folder);
  if (!names) return tl::unexpected(names.error());
  // The folder itself is a checkpoint if it has a checkpoint's name. A folder with a manifest is a checkpoint too,
  // because a user may have renamed a checkpoint.
  const auto beside = checkpoint::list_checkpoints(files, fs::path(folder).parent_path().string());
  if (beside)
    for (const checkpoint::Found& one : *beside)
      if (one.path == folder) return std::vector{one};
  if (std::binary_search(names->begin(), names->end(), checkpoint::kManifestName))
    return std::vector{checkpoint::Found{Generation(0), Step(0), folder}};
  Result<std::vector<checkpoint::Found>> found = checkpoint::list_checkpoints(files, folder);
  if (!found || !found->empty()) return found;
  for (const std::string& name : *names) {
    const auto of_job = checkpoint::list_checkpoints(files, folder + "/" + name);
    if (!of_job) return of_job;
    found->insert(found->end(), of_job->begin(), of_job->end());
  }
  return found;
}

std::string name_of_checkpoint(const checkpoint::Found& found) {
  return fs::path(found.path).filename().string();
}

std::string name_of_job(const checkpoint::Found& found) {
  return fs::path(found.path).parent_path().filename().string();
}

std::uint64_t element_count(const checkpoint::VariableEntry& variable) {
  std::uint64_t words = 0;
  for (const checkpoint::SliceEntry& slice : variable.slices) words += slice.words;
  return words / checkpoint::element_words(variable);
}

}  // namespace disttrain::cli
