// The journal's id for each kind of event (MESSAGE_ID of systemd.journal-fields(7)), so that `journalctl
// MESSAGE_ID=...` finds the events whatever their text. docs/logs.md lists them for users.
#pragma once

#include <span>
#include <string>

namespace disttrain::daemon {

// Kinds that every daemon writes itself; the chief's events are in docs/json.md.
inline constexpr char kCrashed[] = "crashed";
inline constexpr char kEnded[] = "ended_with_error";  // its last line
inline constexpr char kReloaded[] = "reloaded";
inline constexpr char kReloadRefused[] = "reload_refused";

struct MessageId {
  const char* kind;
  const char* id;  // 32 hexadecimal digits
};

// Never changed and never reused.
std::span<const MessageId> message_ids();

// "" for a kind without an id.
const char* message_id_of(const std::string& kind);

}  // namespace disttrain::daemon
