// Counts the messages that a daemon receives. For each kind of message it counts the outcomes and measures how long the
// handling takes. Use it from one thread.
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

// kError: the message was malformed, or wasn't meant for this daemon, and was dropped.
enum class RpcCode : std::uint8_t { kOk, kRefused, kError };
inline constexpr std::size_t kRpcCodes = 3;

// The counts and times of one kind of message.
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

// For the messages of control connections, which are rare.
class RpcBook {
 public:
  // `names` are the messages that the daemon accepts, such as "CreateShards", which is exported as "create_shards".
  // All other messages count as "other".
  explicit RpcBook(const std::vector<std::string>& names);

  RpcFigures& of(const std::string& name);
  void collect(Page& page, const std::string& task) const;

 private:
  std::map<std::string, RpcFigures> figures_;
};

}  // namespace disttrain::metrics
