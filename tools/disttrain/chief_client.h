// The command line's connection to the chief. It sends one request at a time.
//
// Each call blocks: it runs the event loop until the answer has arrived. So a verb needs no callbacks. While it waits,
// the loop also handles signals and child processes. Every wait has a deadline, and `give_up` can end a wait early.
#pragma once

#include <asio/io_context.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/result.h"
#include "common/time.h"
#include "transport/connection.h"
#include "transport/factory/factory.h"
#include "transport/wire/codec.h"

namespace disttrain::cli {

// The chief's address, and the cluster that the chief must belong to.
struct ChiefTarget {
  std::string address;
  std::string cluster;  // "" = any cluster, as with --chief
  std::uint64_t cluster_hash = 0;
};

class ChiefClient final : private transport::ConnectionHandler {
 public:
  // Each wait calls `give_up` after each turn of the loop, and ends if `give_up` returns true. `give_up` may be empty.
  ChiefClient(asio::io_context& loop, std::function<bool()> give_up) : loop_(loop), give_up_(std::move(give_up)) {}

  // Connects and says hello. If nobody listens, or the connection is closed at once, it retries until `deadline`,
  // because the chief may be starting. Error kUnavailable: nobody listens, or no answer came in time. If the chief
  // refuses, the error has the chief's code. Prints the chief's warnings on stderr.
  Status connect(const ChiefTarget& target, Duration deadline);

  // Sends a request and waits for its answer. If the chief refuses the request, the error has the chief's code. If the
  // connection is lost, or no answer comes in time, the error is kUnavailable. If the answer to an earlier request
  // hasn't come, connects anew first: the late answer mustn't be taken for this one's.
  template <typename Answer>
  Result<Answer> ask(const wire::ControlMessage& request, Duration deadline) {
    auto message = exchange(request, deadline);
    if (!message) return tl::unexpected<Error>(std::move(message.error()));
    if (auto* answer = std::get_if<Answer>(&*message)) return std::move(*answer);
    return fail(ErrorCode::kSoftware, "chief/0 at " + target_.address + " answered with a " + wire::name_of(*message) +
                                          ", which doesn't belong to the request");
  }

  // Waits for the next message, and sends no request. For example, after the request of `logs -f` the chief sends new
  // lines again and again. If the message is Refused, the error has its code.
  Result<wire::ControlMessage> next(Duration deadline);

  // Returns true if the connection is open. If it is still open after the wait for an answer, also to the hello, has
  // timed out, the chief is there but silent.
  bool is_connected() const { return connection_ != nullptr && !closed_; }

  // Runs the loop for `pause`. Error kTemporary: `give_up` ended the pause early.
  Status rest(Duration pause);

  // Runs the loop's next handler. Returns at `end` if no handler is due before.
  void turn_until(std::chrono::steady_clock::time_point end);

 private:
  Status say_hello(Duration deadline);
  Result<wire::ControlMessage> exchange(const wire::ControlMessage& request, Duration deadline);
  Status await_message(Duration deadline);
  Result<wire::ControlMessage> take_message();  // REQUIRES: one has arrived
  Status wait(Duration deadline, const std::function<bool()>& is_done, const std::string& for_what);

  Result<transport::MutableBytes> payload_landing(const wire::FrameHeader& header, transport::Bytes control) override;
  void on_frame(const wire::FrameHeader& header, transport::Bytes control, transport::Bytes payload) override;
  void on_sent(std::uint64_t) override {}
  void on_closed(const Error& why) override;

  asio::io_context& loop_;
  const std::function<bool()> give_up_;
  const std::unique_ptr<transport::Transport> transport_ = transport::make_client_transport();
  ChiefTarget target_;
  std::unique_ptr<transport::Connection> connection_;
  std::optional<wire::HelloAnswer> hello_answer_;
  std::deque<wire::ControlMessage> arrived_;  // messages that next() hasn't returned yet
  std::vector<std::byte> landing_;
  std::optional<Error> closed_;
  bool is_owed_ = false;  // the chief still owes the answer to a request that has timed out or was interrupted
};

}  // namespace disttrain::cli
