// Writes to systemd's journal by its native protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL). For signal handlers, which
// must not call libsystemd.
#pragma once

#include <initializer_list>
#include <string_view>
#include <utility>

namespace disttrain::daemon {

// The socket stays open until the process ends.
class JournalSocket {
 public:
  void open();

  // Sends one entry without allocating, locking or waiting. Returns false if the journal didn't accept it.
  bool send(std::initializer_list<std::pair<std::string_view, std::string_view>> fields) const;

 private:
  int fd_ = -1;
};

}  // namespace disttrain::daemon
