// The command line's side of the protocol: one connection to the chief, one request at a time.
//
// A call runs the loop until the answer has arrived, so a verb reads from top to bottom. The same loop handles signals
// and children meanwhile. Every wait has a deadline, and `give_up` ends it early.
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

// Where the chief is, and the cluster that it must belong to.
struct ChiefTarget {
  std::string address;
  std::string cluster;  // "" = any: --chief
  std::uint64_t cluster_hash = 0;
};

class ChiefClient final : private transport::ConnectionHandler {
 public:
  // `give_up` (may be empty) is asked after each turn of the loop.
  ChiefClient(asio::io_context& loop, std::function<bool()> give_up) : loop_(loop), give_up_(std::move(give_up)) {}

  // Retries until `deadline` where nobody listens or the connection is closed at once: the chief may be starting or
  // ending. kUnavailable: nobody listens, or no answer came in time. A refusal returns the chief's code. Warnings go to
  // stderr.
  Status connect(const ChiefTarget& target, Duration deadline);

  // Sends a request and waits for its answer. A Refused becomes an error with its code; a lost connection is
  // kUnavailable.
  template <typename Answer>
  Result<Answer> ask(const wire::ControlMessage& request, Duration deadline) {
    auto message = exchange(request, deadline);
    if (!message) return tl::unexpected<Error>(std::move(message.error()));
    if (auto* answer = std::get_if<Answer>(&*message)) return std::move(*answer);
    return fail(ErrorCode::kSoftware, "chief/0 at " + target_.address + " answered with a " + wire::name_of(*message) +
                                          ", which doesn't belong to the request");
  }

  // Waits for the next message that the chief sends by itself (logs -f). A Refused becomes an error with its code.
  Result<wire::ControlMessage> next(Duration deadline);

  // Whether the connection is open. If it still is after a timeout, the chief is there but silent.
  bool is_connected() const { return connection_ != nullptr && hello_answer_.has_value() && !closed_; }

  // Runs the loop for `pause`. kTemporary: `give_up` ended it.
  Status rest(Duration pause);

  // Runs one handler of the loop, or none if none is due before `end`.
  void turn_until(std::chrono::steady_clock::time_point end);

 private:
  Status say_hello(Duration deadline);
  Result<wire::ControlMessage> exchange(const wire::ControlMessage& request, Duration deadline);
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
  std::deque<wire::ControlMessage> arrived_;  // bounded by what the chief sends between two turns
  std::vector<std::byte> landing_;
  std::optional<Error> closed_;
};

}  // namespace disttrain::cli
