// A real ps on its own thread, over real tcp on loopback; the test plays the chief and the workers. If the environment
// variable DISTTRAIN_TEST_TRANSPORT is "shm", channels and the connections between shards go through shared memory, and
// the workers lend their gradients.
#pragma once

#include <gtest/gtest.h>

#include <asio/io_context.hpp>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/os/arena.h"
#include "psd/ps_daemon.h"
#include "tests/run_until.h"
#include "tests/shards/core/shard_cluster.h"
#include "tests/shards/gated_files.h"
#include "transport/control_link.h"
#include "transport/factory/factory.h"

namespace disttrain::psd::test {

using shards::test::GatedFiles;
using shards::test::Heard;
using shards::test::roster_of;
using shards::test::small_layout;
using shards::test::worker;

std::unique_ptr<transport::Transport> make_test_transport();

// The chief's end of a control connection.
class FakeChief final : public transport::ControlHandler {
 public:
  FakeChief(asio::io_context& loop, transport::Transport& transport);

  const std::string& address() const { return listener_->address(); }
  void send(const wire::ControlMessage& message);
  void hang_up() { link_.reset(); }
  bool connected() const { return link_ != nullptr; }

  // Returns the first waiting message of this type. Heartbeats don't wait here: the newest one is in last_heartbeat.
  template <typename Message>
  std::optional<Message> take() {
    for (auto it = messages.begin(); it != messages.end(); ++it)
      if (const auto* message = std::get_if<Message>(&*it)) {
        const Message found = *message;
        messages.erase(it);
        return found;
      }
    return std::nullopt;
  }

  JournalId journal{77};
  Duration heartbeat_timeout = std::chrono::milliseconds(500);
  std::optional<Refused> refusal;  // the answer to a hello, instead of Welcome
  std::optional<TaskHello> hello;  // the last one
  int hellos = 0;
  int heartbeats = 0;
  std::optional<Heartbeat> last_heartbeat;
  std::deque<wire::ControlMessage> messages;

  void on_answer(const wire::HelloAnswer&) override {}
  void on_message(wire::ControlMessage message) override;
  void on_closed(const Error&) override { link_.reset(); }

 private:
  void on_arrival(std::unique_ptr<transport::Arrival> arrival);

  asio::io_context& loop_;
  std::unique_ptr<transport::Listener> listener_;
  std::unique_ptr<transport::ControlLink> link_;
};

// A peer that dials the ps and says hello: a worker, a shard, a stranger.
class FakePeer final : public transport::ConnectionHandler {
 public:
  FakePeer(asio::io_context& loop, transport::Transport& transport, const std::string& address, const Hello& hello);

  void push(std::uint64_t sequence, const Push& push, const std::vector<float>& gradient);
  void pull(std::uint64_t id);
  void mark(std::uint64_t attempt);
  void send(wire::FrameType type, transport::Bytes control, transport::Bytes payload, std::uint64_t sequence = 0);
  void close() { connection_.reset(); }
  void stop_reading() { connection_->pause_receiving(); }
  void read_again() { connection_->resume_receiving(); }

  JobId job{5};
  Generation generation{3};
  std::string dial_error;
  std::optional<wire::HelloAnswer> answer;
  std::deque<Heard> heard;
  int alive = 0;                      // number of kAlive frames
  std::vector<std::uint64_t> let_go;  // attempts whose marks were answered
  bool closed = false;

  Result<transport::MutableBytes> payload_landing(const wire::FrameHeader& header, transport::Bytes control) override;
  void on_frame(const wire::FrameHeader& header, transport::Bytes control, transport::Bytes payload) override;
  void on_sent(std::uint64_t) override {}
  void on_closed(const Error&) override { closed = true; }

 private:
  std::unique_ptr<transport::Connection> connection_;
  // Where the gradients are that this peer lends. One after the other; a test has fewer under way than fit.
  Arena arena_{ArenaKind::kShared};
  std::optional<Memory> lent_;
  std::size_t lent_end_ = 0;
  std::vector<std::byte> landing_;
  wire::ScratchBuffer scratch_;
};

class PsShell : public testing::Test {
 protected:
  // heartbeat: the heartbeat timeout of the ps and the chief. credits: how many push frames a channel may have under
  // way. log_level, transport_kind: as log.level and transport.kind in cluster.toml. Other than "auto", the kind is
  // that of make_test_transport(), or the ps refuses all channels. patience: how long threads may hang
  // (PsDaemon::Hung).
  explicit PsShell(std::uint32_t threads = 2, Duration heartbeat = std::chrono::milliseconds(500),
                   std::uint32_t credits = 4, const std::string& log_level = "error",
                   const std::string& transport_kind = "auto", Duration patience = std::chrono::minutes(1));
  ~PsShell() override;

  bool until(const std::function<bool()>& done) { return run_until(loop_, done); }
  Hello hello_of(const std::variant<TaskHello, ClientHello, ChannelHello, ShardPeerHello>& who) const;
  std::unique_ptr<FakePeer> dial(const Hello& hello);
  std::unique_ptr<FakePeer> open_channel(std::uint32_t worker_index, std::uint32_t shard, std::uint64_t token = 99);

  // Creates a job that has all shards of small_layout on this ps and trains by SGD with the learning rate 0.5. Waits
  // until the shards are ready.
  void create_job(std::uint32_t shards, std::uint32_t workers, const std::string& mode = "async");
  void create_job(const CreateShards& order);
  // more_train: lines with further keys of [train]. Each line ends with a newline.
  CreateShards order(std::uint32_t shards, std::uint32_t workers, const std::string& mode,
                     const std::string& more_train = "") const;

  asio::io_context loop_;
  const std::unique_ptr<transport::Transport> transport_ = make_test_transport();
  GatedFiles files_;
  FakeChief chief_;
  Member ps_{TaskId{Role::kPs, 0}, Incarnation(4711)};
  std::string address_;
  std::atomic<int> exit_code_{-1};      // once the daemon has ended
  std::atomic<bool> has_hung_ = false;  // the daemon has ended because of a thread that hangs

 private:
  std::thread thread_;
  asio::io_context daemon_loop_;
};

}  // namespace disttrain::psd::test
