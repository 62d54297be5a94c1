// Clients of the HTTP address: some send a request, some stay silent, and some never finish their request.
#include "common/daemon/http/door.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <future>

namespace disttrain::daemon {
namespace {

constexpr Duration kForever = std::chrono::hours(1);

class HttpDoorTest : public ::testing::Test {
 protected:
  HttpDoorTest() {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address_;
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address_), length), 0);
    EXPECT_EQ(::listen(listener_.get(), 128), 0);
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address_), &length);
  }
  Descriptor dial(const std::string& text) const {
    Descriptor client(::socket(AF_INET, SOCK_STREAM, 0));
    EXPECT_EQ(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address_), sizeof address_), 0);
    say(client, text);
    return client;
  }
  static void say(const Descriptor& client, const std::string& text) {
    EXPECT_EQ(::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  static bool is_closed_by_peer(const Descriptor& client) {
    char byte = 0;
    return ::recv(client.get(), &byte, 1, 0) <= 0;
  }

  sockaddr_in address_{};
  Descriptor listener_{::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)};
  Descriptor ended_{::eventfd(0, EFD_NONBLOCK)};
};

TEST_F(HttpDoorTest, SilentOnesKeepNobodyWaiting) {
  HttpDoor door(listener_, ended_, kForever);
  std::vector<Descriptor> silent;
  for (int i = 0; i < 8; ++i) silent.push_back(dial(i % 2 == 0 ? "" : "GET /half HTTP/1.1\r\n"));
  const Descriptor speaks = dial("GET /a HTTP/1.1\r\n\r\n");
  EXPECT_EQ(door.next()->head, "GET /a HTTP/1.1\r\n\r\n");
  say(silent[1], "\r\n");
  EXPECT_EQ(door.next()->head, "GET /half HTTP/1.1\r\n\r\n");
}

TEST_F(HttpDoorTest, SilentOneIsClosedOnceItsTimeIsUp) {
  HttpDoor door(listener_, ended_, std::chrono::milliseconds(1));
  auto next = std::async(std::launch::async, [&door] { return door.next(); });
  EXPECT_TRUE(is_closed_by_peer(dial("")));
  EXPECT_TRUE(is_closed_by_peer(dial("GET /half")));
  ::eventfd_write(ended_.get(), 1);
  EXPECT_FALSE(next.get());
}

TEST_F(HttpDoorTest, OldestIsClosedForOneMoreThanMayWait) {
  HttpDoor door(listener_, ended_, kForever);
  std::vector<Descriptor> silent;
  for (std::size_t i = 0; i < HttpDoor::kMaxWaiting; ++i) silent.push_back(dial(""));
  const Descriptor speaks = dial("GET /a HTTP/1.1\r\n\r\n");
  EXPECT_EQ(door.next()->head, "GET /a HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(is_closed_by_peer(silent.front()));
  say(silent.back(), "GET /b HTTP/1.1\r\n\r\n");
  EXPECT_EQ(door.next()->head, "GET /b HTTP/1.1\r\n\r\n");
}

TEST_F(HttpDoorTest, OneThatNeverEndsIsHandedOnAsFarAsItMayGo) {
  HttpDoor door(listener_, ended_, kForever);
  const Descriptor talks = dial("GET /a HTTP/1.1\r\nX: " + std::string(2 * HttpDoor::kMaxRequestBytes, 'x'));
  EXPECT_EQ(door.next()->head.size(), HttpDoor::kMaxRequestBytes);
}

TEST_F(HttpDoorTest, OneThatLeftIsForgotten) {
  HttpDoor door(listener_, ended_, kForever);
  dial("GET /half HTTP/1.1\r\n");
  const Descriptor speaks = dial("GET /a HTTP/1.1\r\n\r\n");
  EXPECT_EQ(door.next()->head, "GET /a HTTP/1.1\r\n\r\n");
}

}  // namespace
}  // namespace disttrain::daemon
