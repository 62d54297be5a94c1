#include "tools/disttrain/chief_client.h"

#include <gtest/gtest.h>

#include <asio/io_context.hpp>
#include <memory>
#include <optional>
#include <string>

#include "transport/control_link.h"
#include "transport/factory/factory.h"

namespace disttrain::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A chief on the client's own loop. It answers a LogsRequest late: when the next request has come.
class LateChief final : public transport::ControlHandler {
 public:
  explicit LateChief(asio::io_context& loop) {
    auto listener =
        transport_->listen(loop, "127.0.0.1:0", {}, [this, &loop](std::unique_ptr<transport::Arrival> arrival) {
          ++hellos;
          link_ = std::make_unique<transport::ControlLink>(arrival->adopt(loop), *this);
          link_->answer(Welcome{});
          is_late_ = false;
        });
    listener_ = std::move(*listener);
  }

  std::string address() const { return listener_->address(); }

  int hellos = 0;

 private:
  void on_answer(const wire::HelloAnswer&) override {}
  void on_message(wire::ControlMessage message) override {
    if (std::holds_alternative<LogsRequest>(message)) {
      is_late_ = true;
      return;
    }
    if (is_late_) (void)link_->send(LogLines{});
    (void)link_->send(StatusAnswer{"{}"});
  }
  void on_closed(const Error&) override {}

  const std::unique_ptr<transport::Transport> transport_ = transport::make_client_transport();
  std::unique_ptr<transport::Listener> listener_;
  std::unique_ptr<transport::ControlLink> link_;
  bool is_late_ = false;
};

class ChiefClientTest : public testing::Test {
 protected:
  asio::io_context loop_{1};
  LateChief chief_{loop_};
  ChiefClient client_{loop_, {}};
};

TEST_F(ChiefClientTest, AsksAgainOnTheSameConnection) {
  ASSERT_TRUE(client_.connect({chief_.address(), "", 0}, seconds(10)));
  for (int i = 0; i < 2; ++i) {
    const auto status = client_.ask<StatusAnswer>(StatusRequest{}, seconds(10));
    EXPECT_TRUE(status) << status.error().message;
  }
  EXPECT_EQ(chief_.hellos, 1);
}

TEST_F(ChiefClientTest, LateAnswerIsntTakenForThatOfTheNextRequest) {
  ASSERT_TRUE(client_.connect({chief_.address(), "", 0}, seconds(10)));
  const auto lines = client_.ask<LogLines>(LogsRequest{}, milliseconds(50));
  ASSERT_FALSE(lines);
  EXPECT_EQ(lines.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(client_.is_connected()) << "the chief is there, but silent";
  const auto status = client_.ask<StatusAnswer>(StatusRequest{}, seconds(10));
  EXPECT_TRUE(status) << status.error().message;
  EXPECT_EQ(chief_.hellos, 2);
}

}  // namespace
}  // namespace disttrain::cli
