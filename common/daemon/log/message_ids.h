// A fixed id for each kind of event (MESSAGE_ID of systemd.journal-fields(7)). `journalctl MESSAGE_ID=...` finds events
// by this id, whatever their text is. docs/logs.md lists the ids for users.
#pragma once

#include <span>
#include <string>

namespace disttrain::daemon {

// The kinds of events that every daemon logs itself. docs/json.md has the chief's events.
inline constexpr char kCrashed[] = "crashed";
inline constexpr char kEnded[] = "ended_with_error";  // the process's last line
inline constexpr char kReloaded[] = "reloaded";
inline constexpr char kReloadRefused[] = "reload_refused";

struct MessageId {
  const char* kind;
  const char* id;  // 32 hexadecimal digits
};

// An id is never changed and never reused.
std::span<const MessageId> message_ids();

// "" for a kind without an id.
const char* message_id_of(const std::string& kind);

}  // namespace disttrain::daemon
