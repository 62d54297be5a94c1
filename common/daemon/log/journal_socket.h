// Writes to systemd's journal by its native protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL). A signal handler may call
// send(), and a journal that takes no entries, such as one that hangs, delays a process for about a twentieth
// of its time at most. libsystemd has neither property.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace disttrain::daemon {

inline constexpr char kJournalSocket[] = "/run/systemd/journal/socket";

// How long the entries of a process wait for room, all together, in each kJournalWindowMs. Further entries find none.
inline constexpr int kJournalPatienceMs = 500;
inline constexpr int kJournalWindowMs = 10'000;

// The most fields of an entry.
inline constexpr std::size_t kMostJournalFields = 16;

// The name of a field, in capital letters, and its value, which may have any bytes.
using JournalField = std::pair<std::string_view, std::string_view>;

// The socket stays open until the process ends. Any thread may call send().
class JournalSocket {
 public:
  // `path` is where the journal listens. It must stay valid as long as the object.
  void open(const char* path = kJournalSocket);

  // Sends one entry without allocating or locking. Returns false if the journal didn't accept it.
  // REQUIRES: fields.size() <= kMostJournalFields
  bool send(std::span<const JournalField> fields);

 private:
  bool may_wait(std::int64_t now_ms);

  int fd_ = -1;
  const char* path_ = nullptr;
  std::atomic<std::int64_t> window_ms_ = -kJournalWindowMs;  // when the present window began
  std::atomic<std::int64_t> waited_ms_ = 0;                  // in this window
};

}  // namespace disttrain::daemon
