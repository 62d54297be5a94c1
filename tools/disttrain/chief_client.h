// The command line's side of the protocol: one connection to the chief, one request at a time.
//
// Calls run the loop until the answer is there, so that a verb reads from top to bottom; signals and children are
// handled by the same loop meanwhile. Every wait has a deadline, and `give_up` ends it early.
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

// Where the chief is, and the cluster that it must be of.
struct ChiefTarget {
  std::string address;
  std::string cluster;  // "" = whichever: status --chief
  std::uint64_t cluster_hash = 0;
};

class ChiefClient final : private transport::ConnectionHandler {
 public:
  // `give_up` (may be empty) is asked after each turn of the loop.
  ChiefClient(asio::io_context& loop, std::function<bool()> give_up) : loop_(loop), give_up_(std::move(give_up)) {}

  // Tries again until `deadline` where nobody listens yet, or closes at once: the chief may be starting or ending just
  // now. kUnavailable: nobody listens, or no answer in time. kConfig: refused. Warnings go to stderr.
  Status connect(const ChiefTarget& target, Duration deadline);

  // A Refused is an error with its code. A lost connection: kUnavailable.
  template <typename Answer>
  Result<Answer> ask(const wire::ControlMessage& request, Duration deadline) {
    auto message = exchange(request, deadline);
    if (!message) return tl::unexpected<Error>(std::move(message.error()));
    if (auto* answer = std::get_if<Answer>(&*message)) return std::move(*answer);
    return fail(ErrorCode::kSoftware, "chief/0 at " + target_.address + " answered with a " + wire::name_of(*message) +
                                          ", which doesn't belong to the request");
  }

  // The next message that the chief sends by itself (logs -f). A Refused is an error with its code.
  Result<wire::ControlMessage> next(Duration deadline);

  // Whether the connection stands: after an answer that didn't come in time, the chief is there and says nothing.
  bool is_connected() const { return connection_ != nullptr && hello_answer_.has_value() && !closed_; }

  // Turns the loop for so long. kTemporary: `give_up` ended it.
  Status rest(Duration pause);

  // One turn of the loop, at the latest until `end`: for what else happens on it.
  void turn_until(std::chrono::steady_clock::time_point end);

 private:
  Status say_hello(Duration deadline);
  Result<wire::ControlMessage> exchange(const wire::ControlMessage& request, Duration deadline);
  Status wait(Duration deadline, const std::function<bool()>& is_done, const std::string& for_what);
  // Lets the loop turn for so long.

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
