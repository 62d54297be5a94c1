// Which columns of the type INT96 have no timestamp that would wrap (int96.h), in which row groups of a file. To find
// out takes as long as to decode the column, so it isn't done again in each epoch.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

namespace disttrain::input {

// All readers of a file share it; any thread may use it. A column is the number of a wanted one (ParquetFile::open()).
class CheckedTimestamps {
 public:
  bool has(std::size_t group, std::size_t column) const {
    const std::lock_guard lock(mutex_);
    return group < groups_.size() && column < groups_[group].size() && groups_[group][column];
  }
  void add(std::size_t group, std::size_t column) {
    const std::lock_guard lock(mutex_);
    if (group >= groups_.size()) groups_.resize(group + 1);
    if (column >= groups_[group].size()) groups_[group].resize(column + 1);
    groups_[group][column] = true;
  }

 private:
  mutable std::mutex mutex_;               // guards groups_
  std::vector<std::vector<bool>> groups_;  // a bit for each column of a row group
};

}  // namespace disttrain::input
