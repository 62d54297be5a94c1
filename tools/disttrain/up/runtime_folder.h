// Lets other verbs find a running `up` of this user. Each `up` makes a folder with its cluster.toml, and holds a lock
// on it for as long as it runs. The folder is in $XDG_RUNTIME_DIR/disttrain, or in /tmp/disttrain-UID if that variable
// isn't set. Another user could have made such a folder in /tmp. So each use first checks that the folder belongs to
// this user, and that nobody else can write to it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "common/os/descriptor.h"
#include "common/result.h"

namespace disttrain::cli {

std::filesystem::path runtime_root();

// While this object exists, other verbs can find this `up`. If the process is killed, they no longer find it.
class Registration {
 public:
  // Error kTemporary: a running `up` has this name. kNoPermission: another user could write to the folder.
  static Result<Registration> make(const std::string& name, const std::string& cluster_toml);
  ~Registration();
  Registration(Registration&&) = default;
  Registration& operator=(Registration&&) = delete;

 private:
  Registration(std::filesystem::path folder, Descriptor lock) : folder_(std::move(folder)), lock_(std::move(lock)) {}

  std::filesystem::path folder_;
  Descriptor lock_;
};

// Returns the cluster.toml of every running `up` of this user. Removes folders of an `up` that has died. Error
// kNoPermission: another user could write to the folder, so nothing in it was read.
Result<std::vector<std::filesystem::path>> live_clusters();

// Returns the cluster file that a verb uses. It is the first of: `option` (--cluster), $DISTTRAIN_CLUSTER, the file of
// the running `up`, /etc/disttrain/cluster.toml. Error kUsage: several `up` run. kNoInput: there is no cluster file. If
// another user could write to the folder with the files of `up`, prints a warning and skips that folder. If then no
// cluster file is left, the error is kNoPermission.
Result<std::string> find_cluster(const std::string& option);

}  // namespace disttrain::cli
