// How verbs find the live `up` of this user. Each `up` keeps a folder NAME with its cluster.toml in
// $XDG_RUNTIME_DIR/disttrain (else /tmp/disttrain-UID), and locks it for as long as it lives. In /tmp anybody can make
// that folder before us, so each use checks that it belongs to this user and that others can't write into it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "common/os/descriptor.h"
#include "common/result.h"

namespace disttrain::cli {

std::filesystem::path runtime_root();

// Makes an `up` findable until this object is destroyed, or until the process ends, however it ends.
class Registration {
 public:
  // kTemporary: a live `up` has that name. kNoPermission: the folder can't be trusted.
  static Result<Registration> make(const std::string& name, const std::string& cluster_toml);
  ~Registration();
  Registration(Registration&&) = default;
  Registration& operator=(Registration&&) = delete;

 private:
  Registration(std::filesystem::path folder, Descriptor lock) : folder_(std::move(folder)), lock_(std::move(lock)) {}

  std::filesystem::path folder_;
  Descriptor lock_;
};

// The cluster.toml of every live `up` of this user. Removes the folders of dead ones. kNoPermission: the folder can't
// be trusted, and nothing in it was read.
Result<std::vector<std::filesystem::path>> live_clusters();

// The cluster file that a verb uses: `option` (--cluster), else $DISTTRAIN_CLUSTER, else the one live `up`, else
// /etc/disttrain/cluster.toml. kUsage: several are live. kNoInput: there is none at all. A folder that can't be trusted
// is reported on stderr and skipped; kNoPermission where there is no other file.
Result<std::string> find_cluster(const std::string& option);

}  // namespace disttrain::cli
