// Inside http_endpoint: one connection as httplib reads and writes it. The request is there; the answer is bounded by a
// deadline and by the daemon's end.
#pragma once

#include <httplib.h>

#include <cstddef>
#include <string>

#include "common/daemon/http/door.h"
#include "common/time.h"

namespace disttrain::daemon {

class HttpStream final : public httplib::Stream {
 public:
  // `deadline` counts from now. The stream ends at once when `ended`, which outlives it, becomes readable.
  HttpStream(HttpRequest request, Duration deadline, const Descriptor& ended);

  // Call after the last write. Reads for a moment what the peer still sends: closing at once would discard data that
  // the peer hasn't read yet.
  void finish();

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  // -1 after the head.
  ssize_t read(char* to, std::size_t size) override;
  // -1 after the deadline, or if the peer is gone.
  ssize_t write(const char* from, std::size_t size) override;
  // Not used.
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
