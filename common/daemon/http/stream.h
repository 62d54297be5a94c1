// Part of HttpEndpoint: a connection in the form in which httplib reads and writes it. The request has already arrived.
// The answer ends at a deadline, or when the daemon ends.
#pragma once

#include <httplib.h>

#include <cstddef>
#include <string>

#include "common/daemon/http/door.h"
#include "common/time.h"

namespace disttrain::daemon {

class HttpStream final : public httplib::Stream {
 public:
  // `deadline` is counted from now. All waiting ends when `ended` becomes readable. `ended` must outlive the stream.
  HttpStream(HttpRequest request, Duration deadline, const Descriptor& ended);

  // Ends the connection. Call this after the last write. It first reads for a moment whatever the peer still sends. If
  // it closed the connection with unread data, the peer could lose the end of the answer.
  void finish();

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  // Returns -1 after the end of the head.
  ssize_t read(char* to, std::size_t size) override;
  // Returns -1 after the deadline, or if the peer is gone.
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
