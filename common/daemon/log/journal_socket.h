// The journal's own protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL), for signal handlers, which may not call libsystemd.
#pragma once

#include <initializer_list>
#include <string_view>
#include <utility>

namespace disttrain::daemon {

// Stays open for the rest of the process.
class JournalSocket {
 public:
  void open();

  // Sends one entry. Allocates nothing, locks nothing and doesn't wait. False: the journal didn't take it.
  bool send(std::initializer_list<std::pair<std::string_view, std::string_view>> fields) const;

 private:
  int fd_ = -1;
};

}  // namespace disttrain::daemon
