// Messages that a daemon was sent, by their names: how many, what came of them, how long they took. Of one thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/histogram.h"
#include "common/metrics/page.h"
#include "common/time.h"

namespace disttrain::metrics {

// kError: it made no sense, or isn't for this daemon, and was dropped.
enum class RpcCode : std::uint8_t { kOk, kRefused, kError };
inline constexpr std::size_t kRpcCodes = 3;

// Of one kind of message.
class RpcFigures {
 public:
  void note(RpcCode code, Duration took) {
    ++counts_[static_cast<std::size_t>(code)];
    seconds_.observe(to_seconds(took));
  }
  void add(const RpcFigures& other);
  void collect(Page& page, const std::string& task, const std::string& op) const;

 private:
  std::array<std::uint64_t, kRpcCodes> counts_{};
  SecondsHistogram seconds_;
};

// For messages that come seldom: control connections.
class RpcBook {
 public:
  // What the daemon takes, in names as "CreateShards", shown as "create_shards". Others count as "other".
  explicit RpcBook(const std::vector<std::string>& names);

  RpcFigures& of(const std::string& name);
  void collect(Page& page, const std::string& task) const;

 private:
  std::map<std::string, RpcFigures> figures_;
};

}  // namespace disttrain::metrics
