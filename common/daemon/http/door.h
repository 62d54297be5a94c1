// Inside http_endpoint: takes connections, and holds them until their request has come. Those who say nothing, or not
// all, keep no thread from answering others: one thread at a time looks after all of them.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/os/descriptor.h"
#include "common/time.h"

namespace disttrain::daemon {

// A client with its request line and headers. They lack their end where they are longer than kMaxRequestBytes.
struct HttpRequest {
  Descriptor socket;  // non-blocking
  std::string head;   // maybe with the beginning of a body
};

class HttpDoor {
 public:
  static constexpr std::size_t kMaxRequestBytes = 8192;  // a browser sends about 1 KiB, and its cookies of this host
  static constexpr std::size_t kMaxWaiting = 64;         // one more, and the oldest is closed
  static constexpr Duration kPatience = std::chrono::seconds(2);

  // Who hasn't said all within `patience` is closed. `listener`, a non-blocking socket that listens, outlives it, as
  // `ended` does.
  HttpDoor(const Descriptor& listener, const Descriptor& ended, Duration patience = kPatience);

  // Any thread; several wait here in turn. None: `ended` is readable.
  std::optional<HttpRequest> next();

 private:
  struct Waiting {
    HttpRequest request;
    Instant end;
  };
  enum class Heard { kAll, kPart, kGone };

  bool wait_for_news() const;
  bool accept_one();
  static Heard hear(HttpRequest& request);

  const Descriptor& listener_;
  const Descriptor& ended_;
  const Duration patience_;
  std::mutex mutex_;              // guards the rest; held by the one that looks after them
  std::vector<Waiting> waiting_;  // oldest first
  bool can_accept_ = true;        // false: out of descriptors or memory, for a moment
};

}  // namespace disttrain::daemon
