// Remembers for a minute that RDMA has failed, for the whole process or with one host. New connections then use the
// base transport. Without this, a connection that fails as soon as it moves a payload would be dialled by RDMA again
// and again. Also logs why a connection doesn't use RDMA. Any thread may use this class.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "common/time.h"

namespace disttrain::transport {

class RdmaAvoidance {
 public:
  static constexpr Duration kAvoidFor = std::chrono::minutes(1);
  static constexpr std::size_t kMaxKnown = 1024;  // hosts, and also addresses; of more it remembers nothing

  // `warn` logs a sentence. May be empty.
  explicit RdmaAvoidance(std::function<void(const std::string&)> warn) : warn_(std::move(warn)) {}

  // RDMA has failed. `host` is a numeric address without a port; "" stands for all hosts.
  void avoid(const std::string& host, const std::string& why, Instant now);
  // Why a connection with this host must not use RDMA now. Empty: it may use RDMA.
  std::optional<std::string> why_not(const std::string& host, Instant now) const;

  // Logs why connections with an address don't use RDMA, unless the last sentence for this address was the same.
  void tell_once(const std::string& address, const std::string& sentence);

 private:
  struct Failed {
    std::string why;
    Instant until{};
  };
  const std::function<void(const std::string&)> warn_;
  mutable std::mutex mutex_;  // guards the members below; warn_ isn't called under it
  std::map<std::string, Failed> failed_;
  std::map<std::string, std::string> told_;
};

}  // namespace disttrain::transport
