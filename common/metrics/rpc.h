// Messages that a daemon received, by name: how many, their outcome, their duration. Of one thread.
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

// kError: malformed, or not for this daemon; dropped.
enum class RpcCode : std::uint8_t { kOk, kRefused, kError };
inline constexpr std::size_t kRpcCodes = 3;

// Figures of one kind of message.
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

// For rare messages: control connections.
class RpcBook {
 public:
  // The messages that the daemon takes, in names such as "CreateShards", shown as "create_shards". Others count as
  // "other".
  explicit RpcBook(const std::vector<std::string>& names);

  RpcFigures& of(const std::string& name);
  void collect(Page& page, const std::string& task) const;

 private:
  std::map<std::string, RpcFigures> figures_;
};

}  // namespace disttrain::metrics
