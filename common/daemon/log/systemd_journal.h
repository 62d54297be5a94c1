// Writes to systemd's journal, so that an entry has fields beside its text. docs/logs.md lists the fields.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace disttrain::daemon {

// Returns true if stderr goes into the journal. systemd puts the device and inode of that stream into $JOURNAL_STREAM
// (systemd.exec(5)).
bool stderr_is_journal();

// Returns true if this host has a journal that accepts entries.
bool journal_is_there();

// Names in capital letters, and values, which may have any bytes.
using JournalFields = std::vector<std::pair<std::string, std::string>>;

// Writes one entry, and adds the program's name as SYSLOG_IDENTIFIER. A journal without room
// delays the caller for at most kJournalPatienceMs (journal_socket.h). Returns false if the journal didn't accept the
// entry. Any thread may call it. REQUIRES: fields.size() < kMostJournalFields
bool send_to_journal(const JournalFields& fields);

}  // namespace disttrain::daemon
