// How verbs find the live `up` of this user: each `up` keeps a folder NAME with its cluster.toml in $XDG_RUNTIME_DIR/
// disttrain (else /tmp/disttrain-UID), and a lock on it for as long as it lives. In /tmp anybody can make that folder
// before us: it is used only where it is this user's and others can't write into it, which each use checks.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "common/os/descriptor.h"
#include "common/result.h"

namespace disttrain::cli {

std::filesystem::path runtime_root();

// An `up` that can be found. Gone with this object, or with the process however it ends.
class Registration {
 public:
  // kTemporary when a live one has that name; kNoPermission when the folder isn't to be trusted.
  static Result<Registration> make(const std::string& name, const std::string& cluster_toml);
  ~Registration();
  Registration(Registration&&) = default;
  Registration& operator=(Registration&&) = delete;

 private:
  Registration(std::filesystem::path folder, Descriptor lock) : folder_(std::move(folder)), lock_(std::move(lock)) {}

  std::filesystem::path folder_;
  Descriptor lock_;
};

// cluster.toml of every live `up` of this user. Folders whose `up` has died are removed. kNoPermission when the folder
// isn't to be trusted: then nothing in it is looked at.
Result<std::vector<std::filesystem::path>> live_clusters();

// The cluster file that a verb uses: `option` (--cluster), else $DISTTRAIN_CLUSTER, else the one live `up`, else
// /etc/disttrain/cluster.toml. kUsage when several are live, kNoInput when there is none at all. A folder that isn't to
// be trusted is told on stderr and passed over; kNoPermission when there is no other file.
Result<std::string> find_cluster(const std::string& option);

}  // namespace disttrain::cli
