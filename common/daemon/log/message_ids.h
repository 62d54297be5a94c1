// What each kind of event is called in the journal (MESSAGE_ID of systemd.journal-fields(7)), so that
// `journalctl MESSAGE_ID=...` finds it whatever its text says. docs/logs.md lists them for users.
#pragma once

#include <span>
#include <string>

namespace disttrain::daemon {

// Kinds that a daemon itself knows; those of the chief's events are in docs/json.md.
inline constexpr char kCrashed[] = "crashed";
inline constexpr char kEnded[] = "ended_with_error";  // the last thing it says
inline constexpr char kReloaded[] = "reloaded";
inline constexpr char kReloadRefused[] = "reload_refused";

struct MessageId {
  const char* kind;
  const char* id;  // 32 hexadecimal digits
};

// Never changed and never used again.
std::span<const MessageId> message_ids();

// "": such a kind has none.
const char* message_id_of(const std::string& kind);

}  // namespace disttrain::daemon
