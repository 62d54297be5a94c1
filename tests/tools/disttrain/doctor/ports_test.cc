// What answers at the ports of a cluster may be any process.
#include "tools/disttrain/doctor/ports.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <string>
#include <thread>

namespace disttrain::cli {
namespace {

TEST(Ports, OnlyTheBeginOfAPageWithoutEndIsRead) {
  asio::io_context loop;
  asio::ip::tcp::acceptor acceptor(loop, {asio::ip::address_v4::loopback(), 0});
  constexpr std::size_t kPage = std::size_t{64} << 20;
  std::size_t sent = 0;
  std::thread stranger([&acceptor, &sent] {
    asio::ip::tcp::socket socket = acceptor.accept();
    const std::string piece(1 << 16, 'x');
    while (sent < kPage) {
      const ssize_t count = ::send(socket.native_handle(), piece.data(), piece.size(), MSG_NOSIGNAL);
      if (count <= 0) break;
      sent += static_cast<std::size_t>(count);
    }
  });
  const PortAnswer answer = ask_for_metrics("127.0.0.1:" + std::to_string(acceptor.local_endpoint().port()));
  stranger.join();
  EXPECT_EQ(answer.listening, Listening::kSilent);
  EXPECT_EQ(answer.said_task, "");
  EXPECT_LT(sent, kPage) << "doctor has read the whole page";
}

}  // namespace
}  // namespace disttrain::cli
