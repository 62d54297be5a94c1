#include "workerd/reach_probe.h"

#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <utility>

#include "transport/wire/codec.h"

namespace disttrain::workerd {

// Dials one ps. Any answer shows that the ps can be reached, even a refusal.
class ReachProbe::Target final : public transport::ConnectionHandler {
 public:
  Target(ReachProbe& probe, Member ps) : probe_(probe), ps_(ps), timer_(probe.loop_) {}
  ~Target() override {
    if (connection_) connection_->close();
  }

  void dial(transport::Transport& transport, const std::string& address, const std::vector<std::byte>& hello,
            Duration deadline) {
    timer_.expires_after(deadline);
    timer_.async_wait([this, alive = probe_.alive_](asio::error_code cancelled) {
      if (!cancelled && *alive) finish(false);
    });
    transport::OutgoingFrame frame;
    frame.header.type = wire::FrameType::kHello;
    frame.control = hello;
    transport.dial(probe_.loop_, address, frame, deadline,
                   [this, alive = probe_.alive_](Result<std::unique_ptr<transport::Connection>> connection) {
                     if (!*alive || is_over_) return;
                     if (!connection) return finish(false);
                     connection_ = std::move(*connection);
                     connection_->start(*this);
                   });
  }

  Member ps() const { return ps_; }
  bool answered() const { return answered_; }

  Result<transport::MutableBytes> payload_landing(const wire::FrameHeader&, transport::Bytes) override {
    return fail(ErrorCode::kData, "the answer to a hello must not have a payload");
  }
  void on_frame(const wire::FrameHeader&, transport::Bytes, transport::Bytes) override { finish(true); }
  void on_sent(std::uint64_t) override {}
  void on_closed(const Error&) override { finish(false); }

 private:
  void finish(bool answered) {
    if (std::exchange(is_over_, true)) return;
    answered_ = answered;
    timer_.cancel();
    probe_.finish_one();
  }

  ReachProbe& probe_;
  const Member ps_;
  asio::steady_timer timer_;
  std::unique_ptr<transport::Connection> connection_;
  bool answered_ = false;
  bool is_over_ = false;
};

ReachProbe::ReachProbe(asio::io_context& loop, transport::Transport& transport, const Hello& hello,
                       std::vector<Owner> targets, Duration deadline, std::function<void(std::vector<Member>)> done)
    : loop_(loop), done_(std::move(done)), left_(targets.size()) {
  const std::vector<std::byte> bytes = wire::encode(hello);
  for (const Owner& target : targets) targets_.push_back(std::make_unique<Target>(*this, target.ps));
  for (std::size_t i = 0; i < targets.size(); ++i) targets_[i]->dial(transport, targets[i].address, bytes, deadline);
  if (targets.empty())
    asio::post(loop_, [this, alive = alive_] {
      if (*alive) done_({});
    });
}

ReachProbe::~ReachProbe() {
  *alive_ = false;
}

// Posts the report to the loop. A connection may be calling this function, and `done` may destroy that connection.
void ReachProbe::finish_one() {
  if (--left_ > 0) return;
  asio::post(loop_, [this, alive = alive_] {
    if (!*alive) return;
    std::vector<Member> unreachable;
    for (const auto& target : targets_)
      if (!target->answered()) unreachable.push_back(target->ps());
    done_(std::move(unreachable));
  });
}

}  // namespace disttrain::workerd
