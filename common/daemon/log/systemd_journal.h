// Writes to systemd's journal by its own interface (sd_journal_send(3)), so that fields stay apart from the text:
// docs/logs.md lists them.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace disttrain::daemon {

inline constexpr char kJournalSocket[] = "/run/systemd/journal/socket";

// Whether stderr goes into the journal: $JOURNAL_STREAM names its device and inode (systemd.exec(5)).
bool stderr_is_journal();

// Whether a journal takes entries on this host.
bool journal_is_there();

// Names in capitals, values of any bytes.
using JournalFields = std::vector<std::pair<std::string, std::string>>;

// Writes one entry, with SYSLOG_IDENTIFIER, the program's name. May wait for the journal. False: the journal didn't
// take it.
bool send_to_journal(const JournalFields& fields);

}  // namespace disttrain::daemon
