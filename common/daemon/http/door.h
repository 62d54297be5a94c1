// Inside http_endpoint: accepts connections and holds them until their request is there. A client that sends nothing,
// or only part of a request, occupies no thread: one thread at a time watches all of them.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/os/descriptor.h"
#include "common/time.h"

namespace disttrain::daemon {

// A client with its request line and headers; they are incomplete if longer than kMaxRequestBytes.
struct HttpRequest {
  Descriptor socket;  // non-blocking
  std::string head;   // may also hold the beginning of a body
};

class HttpDoor {
 public:
  static constexpr std::size_t kMaxRequestBytes = 8192;  // a browser sends about 1 KiB plus its cookies of this host
  static constexpr std::size_t kMaxWaiting = 64;         // one more closes the oldest
  static constexpr Duration kPatience = std::chrono::seconds(2);

  // Closes a client whose request isn't there within `patience`. `listener`, a non-blocking listening socket, and
  // `ended` outlive it.
  HttpDoor(const Descriptor& listener, const Descriptor& ended, Duration patience = kPatience);

  // The next request. Any thread; several wait in turn. None: `ended` is readable.
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
  std::mutex mutex_;              // guards the rest; held by the thread that watches the clients
  std::vector<Waiting> waiting_;  // oldest first
  bool can_accept_ = true;        // false for a moment when descriptors or memory have run out
};

}  // namespace disttrain::daemon
