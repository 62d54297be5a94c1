// Part of HttpEndpoint: accepts connections, and keeps each until its request has arrived. A single thread at a time
// watches all connections, so a client that sends nothing, or only part of a request, occupies no thread.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/os/descriptor.h"
#include "common/time.h"

namespace disttrain::daemon {

// A client's connection and what it has sent: the request line and the headers. A head that is longer than
// kMaxRequestBytes is cut to this length.
struct HttpRequest {
  Descriptor socket;  // non-blocking
  std::string head;   // may also hold the beginning of a body
};

class HttpDoor {
 public:
  static constexpr std::size_t kMaxRequestBytes = 8192;  // a browser sends about 1 KiB plus this host's cookies
  static constexpr std::size_t kMaxWaiting = 64;         // if one more client connects, the oldest is closed
  static constexpr Duration kPatience = std::chrono::seconds(2);

  // Closes a client whose request hasn't arrived within `patience`. `listener` is a non-blocking listening socket.
  // `ended` becomes readable when the endpoint ends. Both descriptors must outlive this object.
  HttpDoor(const Descriptor& listener, const Descriptor& ended, Duration patience = kPatience);

  // Waits for the next request and returns it. Returns none once `ended` is readable. Any thread may call this; the
  // callers take turns.
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
  std::mutex mutex_;              // guards the members below; the thread that watches the clients holds it
  std::vector<Waiting> waiting_;  // oldest first
  // false for a short time after descriptors or memory ran out, so that accept() isn't retried at once
  bool can_accept_ = true;
};

}  // namespace disttrain::daemon
