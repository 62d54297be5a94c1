// disttrain checkpoint list FOLDER: lists the checkpoints of a job, or of all jobs in a directory.
#include <iostream>

#include "common/checkpoint/disk_files.h"
#include "common/daemon/startup.h"
#include "tools/disttrain/checkpoint/checkpoint.h"
#include "tools/disttrain/follow/progress.h"
#include "tools/disttrain/json.h"
#include "tools/disttrain/table.h"
#include "tools/disttrain/units.h"
#include "tools/disttrain/verbs.h"

namespace disttrain::cli {

namespace {

std::uint64_t bytes_in(checkpoint::Files& files, const std::string& folder) {
  std::uint64_t bytes = 0;
  const auto names = files.list(folder);
  if (!names) return 0;
  for (const std::string& name : *names)
    if (const auto file = files.open(folder + "/" + name)) bytes += (*file)->size();
  return bytes;
}

Json listed(checkpoint::Files& files, const checkpoint::Found& found) {
  Json json = {{"job", name_of_job(found)},
               {"name", name_of_checkpoint(found)},
               {"path", found.path},
               {"generation", found.generation.value},
               {"step", found.step.value},
               {"created", nullptr},
               {"bytes", bytes_in(files, found.path)},
               {"shards", nullptr},
               {"readable", true},
               {"reason", nullptr}};
  const auto open = checkpoint::open_checkpoint(files, found.path);
  if (!open) {
    json["readable"] = false;
    json["reason"] = open.error().message;
    return json;
  }
  json["generation"] = open->manifest.generation.value;
  json["step"] = open->manifest.step.value;
  json["created"] = time_text(open->manifest.created);
  json["shards"] = open->manifest.shards.size();
  return json;
}

// Returns the checkpoints that were set aside because they didn't verify. `folder` is a job's folder, or the directory
// with the folders of several jobs.
Json set_aside_in(checkpoint::Files& files, const std::string& folder) {
  std::vector<std::string> folders = {folder};
  if (const auto names = files.list(folder))
    for (const std::string& name : *names) folders.push_back(folder + "/" + name);
  Json list = Json::array();
  for (const std::string& of_job : folders)
    if (const auto paths = checkpoint::list_set_aside(files, of_job))
      for (const std::string& path : *paths) list.push_back({{"path", path}, {"bytes", bytes_in(files, path)}});
  return list;
}

void print_set_aside(const Json& set_aside) {
  for (const Json& one : set_aside)
    std::cout << "set aside because it didn't verify: " << text_of(one, "path") << " ("
              << bytes_text(one["bytes"].get<std::uint64_t>()) << ")\n";
  if (!set_aside.empty())
    std::cout
        << "No job uses a checkpoint that was set aside. See its damage with `disttrain checkpoint verify PATH`, then "
           "remove it.\n";
}

void print(const Json& checkpoints, const std::string& folder) {
  if (checkpoints.empty()) {
    std::cout << "no checkpoints in " << folder << '\n';
    return;
  }
  Table table({"JOB", "NAME", "GENERATION", "STEP", "CREATED", "SIZE", "SHARDS", "MANIFEST"});
  for (const Json& one : checkpoints) {
    const bool is_readable = one["readable"].get<bool>();
    table.add({text_of(one, "job"), text_of(one, "name"), one["generation"].dump(),
               with_commas(one["step"].get<double>()), is_readable ? text_of(one, "created") : "-",
               bytes_text(one["bytes"].get<std::uint64_t>()), is_readable ? one["shards"].dump() : "-",
               is_readable ? "readable" : "unreadable"});
  }
  std::cout << table.text();
  for (const Json& one : checkpoints)
    if (!one["readable"].get<bool>()) std::cout << "unreadable: " << text_of(one, "reason") << '\n';
}

}  // namespace

int checkpoint_list(const CheckpointOptions& options) {
  checkpoint::DiskFiles files;
  const std::string folder = absolute_path(options.path);
  const auto found = checkpoints_in(files, folder);
  if (!found) return daemon::report("disttrain checkpoint list", found.error());
  Json checkpoints = Json::array();
  for (const checkpoint::Found& one : *found) checkpoints.push_back(listed(files, one));
  const Json set_aside = set_aside_in(files, folder);
  if (options.json) {
    std::cout << line_of({{"checkpoints", checkpoints}, {"set_aside", set_aside}}) << '\n';
  } else {
    print(checkpoints, folder);
    print_set_aside(set_aside);
  }
  return 0;
}

}  // namespace disttrain::cli
