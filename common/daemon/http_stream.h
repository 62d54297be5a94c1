// Inside http_endpoint: one accepted connection as httplib reads and writes it, with an end to everything: so many
// bytes of a request, so much time for all of it, and the end of the daemon.
#pragma once

#include <httplib.h>

#include <array>
#include <string>

#include "common/time.h"

namespace disttrain::daemon {

// A file descriptor that is closed with it. -1: none.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

class HttpStream final : public httplib::Stream {
 public:
  static constexpr std::size_t kMaxRequestBytes = 16384;

  // Of a non-blocking socket. `deadline` counts from now, for reading and writing together; it ends at once when
  // `ended`, which outlives it, gets readable.
  HttpStream(Descriptor socket, Duration deadline, const Descriptor& ended);

  // Nothing more will be written; takes what the peer still sends, for a moment, so that closing doesn't throw away
  // what the peer hasn't read yet.
  void finish();

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  // -1 once the time or the bytes are used up; read: 0 when the peer has closed.
  ssize_t read(char* to, std::size_t size) override;
  ssize_t write(const char* from, std::size_t size) override;
  // Nobody asks who it is.
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return socket_.get(); }

 private:
  bool wait_for(short events, Instant end) const;

  const Descriptor socket_;
  const Descriptor& ended_;
  const Instant end_;
  std::size_t bytes_read_ = 0;
  std::array<char, 4096> buffer_;  // httplib reads byte by byte
  std::size_t begin_ = 0;
  std::size_t filled_ = 0;
};

}  // namespace disttrain::daemon
