// Inside http_endpoint: one connection as httplib reads and writes it: the request has come, and the answer has so much
// time, and the end of the daemon.
#pragma once

#include <httplib.h>

#include <cstddef>
#include <string>

#include "common/daemon/http/door.h"
#include "common/time.h"

namespace disttrain::daemon {

class HttpStream final : public httplib::Stream {
 public:
  // `deadline` counts from now; it ends at once when `ended`, which outlives it, gets readable.
  HttpStream(HttpRequest request, Duration deadline, const Descriptor& ended);

  // Nothing more will be written; takes what the peer still sends, for a moment, so that closing doesn't throw away
  // what the peer hasn't read yet.
  void finish();

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  // -1 behind the head.
  ssize_t read(char* to, std::size_t size) override;
  // -1 once the time is used up, or the peer gone.
  ssize_t write(const char* from, std::size_t size) override;
  // Nobody asks who it is.
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return socket_.get(); }

 private:
  bool wait_for(short events, Instant end) const;

  const Descriptor socket_;
  const std::string head_;
  const Descriptor& ended_;
  const Instant end_;
  std::size_t bytes_read_ = 0;
};

}  // namespace disttrain::daemon
