// The chief counts a task as dead only if nobody listens at its address and the chief doesn't hear it any more. The
// refusal alone proves nothing, because people write the addresses by hand, and NAT may change them on the way.
//
// The chief also probes the holder of a place when another process says hello for this place. Otherwise the last
// process to say hello would get the place, and one forged or mistaken hello would end a living daemon for good. The
// answer names the incarnation that lives at the address, so a new process that lives there gets the place at once.
// While the chief probes, it tells the new process to retry. To keep its connection open would save one pause of 50 ms,
// but would need a bound on the number of such connections.
#include "chiefd/task_probe.h"

#include <asio/post.hpp>
#include <utility>

#include "common/daemon/clock.h"
#include "transport/wire/codec.h"

namespace disttrain::chiefd {
namespace {

// The pause before the probe dials again. A dying process needs about this long to close its sockets.
constexpr Duration kPause = std::chrono::milliseconds(2);

}  // namespace

TaskProbe::TaskProbe(asio::io_context& loop, transport::Transport& transport, std::string address,
                     std::vector<std::byte> hello, Duration deadline,
                     std::function<void(ProbeOutcome, const Member&)> done)
    : loop_(loop),
      transport_(transport),
      address_(std::move(address)),
      hello_(std::move(hello)),
      end_(daemon::now() + deadline),
      done_(std::move(done)),
      deadline_(loop),
      pause_(loop) {
  deadline_.expires_after(deadline);
  deadline_.async_wait([this, alive = alive_](const asio::error_code& error) {
    if (!error && *alive) finish(ProbeOutcome::kNoAnswer);
  });
  dial();
}

TaskProbe::~TaskProbe() {
  *alive_ = false;
  if (!connection_) return;
  connection_->close();
  asio::post(loop_,
             [dead = std::shared_ptr<transport::Connection>(std::move(connection_))] {});  // it may be the caller
}

void TaskProbe::dial() {
  transport::OutgoingFrame hello;
  hello.header.type = wire::FrameType::kHello;
  hello.control = hello_;
  transport_.dial(loop_, address_, hello, end_ - daemon::now(),
                  [this, alive = alive_](Result<std::unique_ptr<transport::Connection>> connection) {
                    if (!*alive) return;
                    if (!connection)
                      return finish(transport::proves_nobody_listens(connection.error()) ? ProbeOutcome::kRefused
                                                                                         : ProbeOutcome::kNoAnswer);
                    connection_ = std::move(*connection);
                    connection_->start(*this);
                  });
}

void TaskProbe::dial_again() {
  asio::post(loop_, [dead = std::shared_ptr<transport::Connection>(std::move(connection_))] {});
  pause_.expires_after(kPause);
  pause_.async_wait([this, alive = alive_](const asio::error_code& error) {
    if (!error && *alive && daemon::now() < end_) dial();
  });
}

void TaskProbe::finish(ProbeOutcome outcome, const Member& by) {
  deadline_.cancel();
  done_(outcome, by);
}

Result<transport::MutableBytes> TaskProbe::payload_landing(const wire::FrameHeader&, transport::Bytes) {
  return fail(ErrorCode::kData, "the answer to a hello must not have a payload");
}

void TaskProbe::on_frame(const wire::FrameHeader& header, transport::Bytes control, transport::Bytes) {
  const Result<wire::HelloAnswer> answer = wire::decode_hello_answer(header.type, control);
  const Refused* refused = answer ? std::get_if<Refused>(&*answer) : nullptr;
  finish(ProbeOutcome::kAnswered, refused != nullptr ? refused->by : Member());
}

void TaskProbe::on_closed(const Error&) {
  dial_again();
}

}  // namespace disttrain::chiefd
