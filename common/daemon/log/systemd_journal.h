// systemd's journal, spoken to in its own way (sd_journal_send(3)), so that what a line is about stays apart from its
// text: docs/logs.md lists the fields.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace disttrain::daemon {

inline constexpr char kJournalSocket[] = "/run/systemd/journal/socket";

// Stderr goes into the journal by itself: $JOURNAL_STREAM names its device and inode (systemd.exec(5)).
bool stderr_is_journal();

// Somebody takes entries on this host.
bool journal_is_there();

// Name in capitals, value of any bytes.
using JournalFields = std::vector<std::pair<std::string, std::string>>;

// One entry; SYSLOG_IDENTIFIER, the program's name, comes with it. May wait for the journal. False: it wasn't taken.
bool send_to_journal(const JournalFields& fields);

}  // namespace disttrain::daemon
