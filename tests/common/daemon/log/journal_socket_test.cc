#include "common/daemon/log/journal_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>

namespace disttrain::daemon {
namespace {

// Listens where a journal does, and reads only if it is told to.
class Journal {
 public:
  Journal() : fd_(::socket(AF_UNIX, SOCK_DGRAM, 0)) {
    std::string folder = testing::TempDir() + "journalXXXXXX";
    path_ = std::string(::mkdtemp(folder.data())) + "/socket";
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::strncpy(at.sun_path, path_.c_str(), sizeof at.sun_path - 1);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  }
  ~Journal() {
    ::close(fd_);
    ::unlink(path_.c_str());
  }

  const char* path() const { return path_.c_str(); }

  std::string read() {
    std::array<char, 1024> bytes;
    const ssize_t size = ::recv(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    return size < 0 ? "nothing" : std::string(bytes.data(), static_cast<std::size_t>(size));
  }

 private:
  int fd_;
  std::string path_;
};

bool send(JournalSocket& socket, std::string_view text) {
  const JournalField fields[] = {{"MESSAGE", text}, {"PRIORITY", "6"}};
  return socket.send(fields);
}

TEST(JournalSocketTest, AnEntryHasTheLengthOfEachValue) {
  Journal journal;
  JournalSocket socket;
  socket.open(journal.path());
  EXPECT_TRUE(send(socket, "two\nlines"));
  EXPECT_EQ(journal.read(), std::string("MESSAGE\n\x09\0\0\0\0\0\0\0two\nlines\nPRIORITY\n\x01\0\0\0\0\0\0\0", 43) +
                                std::string("6\n"));
}

TEST(JournalSocketTest, NoJournalIsNoEntry) {
  JournalSocket socket;
  socket.open("/nowhere/socket");
  EXPECT_FALSE(send(socket, "lost"));
}

TEST(JournalSocketTest, FewEntriesWaitForAJournalThatHangs) {
  Journal journal;
  JournalSocket socket;
  socket.open(journal.path());
  int accepted = 0;
  while (send(socket, "unread")) ++accepted;
  EXPECT_GT(accepted, 0);
  // If each waited for its own time, these would take longer than any test may.
  for (int i = 0; i < 100'000; ++i) EXPECT_FALSE(send(socket, "no room"));
  journal.read();
  EXPECT_TRUE(send(socket, "room again"));
}

}  // namespace
}  // namespace disttrain::daemon
