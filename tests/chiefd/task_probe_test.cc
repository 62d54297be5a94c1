// Probes a task over loopback. A task that answers is alive. If nobody listens at the address, the task is dead. Any
// other outcome proves nothing.
#include "chiefd/task_probe.h"

#include <gtest/gtest.h>

#include <asio/ip/tcp.hpp>
#include <optional>

#include "common/messages/session.h"
#include "transport/factory/factory.h"
#include "transport/wire/codec.h"

namespace disttrain::chiefd {
namespace {

using asio::ip::tcp;
using namespace std::chrono_literals;

const Member kTask{{Role::kPs, 3}, Incarnation(17)};

class TaskProbeTest : public testing::Test {
 protected:
  // Listens on a free port. The kernel accepts connections there, but no program answers.
  void listen() { acceptor_.emplace(loop_, tcp::endpoint(asio::ip::address_v4::loopback(), 0)); }
  std::string address() const { return "127.0.0.1:" + std::to_string(acceptor_->local_endpoint().port()); }

  void probe(const std::string& address, Duration deadline = 60s) {
    probe_ = std::make_unique<TaskProbe>(
        loop_, *transport_, address, wire::encode(Hello{.cluster = "test", .cluster_hash = 1, .who = ClientHello{"t"}}),
        deadline, [this](ProbeOutcome outcome, const Member& by) {
          outcome_ = outcome;
          by_ = by;
          probe_.reset();
        });
  }
  ProbeOutcome outcome() {
    while (!outcome_) loop_.run_one();
    return *outcome_;
  }

  asio::io_context loop_;
  const std::unique_ptr<transport::Transport> transport_ = transport::make_client_transport();
  std::optional<tcp::acceptor> acceptor_;
  std::unique_ptr<TaskProbe> probe_;
  std::optional<ProbeOutcome> outcome_;
  Member by_;
};

TEST_F(TaskProbeTest, PortWithoutAListenerIsRefused) {
  listen();
  const std::string free = address();
  acceptor_.reset();
  probe(free);
  EXPECT_EQ(outcome(), ProbeOutcome::kRefused);
}

TEST_F(TaskProbeTest, ProcessThatRefusesAnswers) {
  std::vector<std::unique_ptr<transport::Connection>> connections;
  const auto listener =
      transport_->listen(loop_, "127.0.0.1:0", {}, [this, &connections](std::unique_ptr<transport::Arrival> arrival) {
        const std::vector<std::byte> bytes = wire::encode(Refused{ErrorCode::kConfig, "no", false, kTask});
        transport::OutgoingFrame frame;
        frame.header.type = wire::FrameType::kRefused;
        frame.control = bytes;
        connections.push_back(arrival->adopt(loop_));
        connections.back()->send(frame);
        connections.back()->close();
      });
  ASSERT_TRUE(listener);
  probe((*listener)->address());
  EXPECT_EQ(outcome(), ProbeOutcome::kAnswered);
  EXPECT_EQ(by_, kTask);
}

TEST_F(TaskProbeTest, ListenerThatSaysNothingProvesNothing) {
  listen();
  probe(address(), 50ms);
  EXPECT_EQ(outcome(), ProbeOutcome::kNoAnswer);
}

TEST_F(TaskProbeTest, PortThatClosesAfterItAcceptedIsRefused) {
  listen();
  bool is_accepted = false;
  acceptor_->async_accept([this, &is_accepted](const asio::error_code&, tcp::socket) {
    is_accepted = true;
    acceptor_->close();
  });
  probe(address());
  EXPECT_EQ(outcome(), ProbeOutcome::kRefused);
  EXPECT_TRUE(is_accepted);
}

TEST_F(TaskProbeTest, DroppedProbeSaysNothing) {
  listen();
  probe(address());
  probe_.reset();
  loop_.run_for(1s);
  EXPECT_FALSE(outcome_);
}

}  // namespace
}  // namespace disttrain::chiefd
