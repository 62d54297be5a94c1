// The journal's own protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL) for those who may not call libsystemd: signal
// handlers.
#pragma once

#include <initializer_list>
#include <string_view>
#include <utility>

namespace disttrain::daemon {

// Kept open for the rest of the process.
class JournalSocket {
 public:
  void open();

  // One entry; allocates nothing, takes no lock, and doesn't wait. False: it wasn't taken.
  bool send(std::initializer_list<std::pair<std::string_view, std::string_view>> fields) const;

 private:
  int fd_ = -1;
};

}  // namespace disttrain::daemon
