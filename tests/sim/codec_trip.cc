#include "tests/sim/codec_trip.h"

namespace disttrain::sim {
namespace {

using Problem = std::optional<std::string>;

template <typename Message>
Problem take(Message& message, Result<Message> decoded) {
  if (!decoded) return decoded.error().message;
  message = std::move(*decoded);
  return std::nullopt;
}

struct Trip {
  wire::ScratchBuffer& scratch;

  Problem operator()(wire::HelloAnswer& answer) const {
    if (const auto* welcome = std::get_if<Welcome>(&answer))
      return take(answer, wire::decode_hello_answer(wire::FrameType::kWelcome, wire::encode(*welcome)));
    return take(answer, wire::decode_hello_answer(wire::FrameType::kRefused, wire::encode(std::get<Refused>(answer))));
  }
  Problem operator()(wire::ControlMessage& message) const {
    const Result<wire::EncodedControl> bytes = wire::encode(message);
    if (!bytes) return bytes.error().message;
    return take(message, wire::decode_control(bytes->type, bytes->control(), bytes->payload()));
  }
  Problem operator()(PushFrame& frame) const { return take(frame.push, wire::decode_push(encoded(frame.push))); }
  Problem operator()(ParametersFrame& frame) const {
    return take(frame.parameters, wire::decode_parameters(encoded(frame.parameters)));
  }
  Problem operator()(Pull& message) const { return take(message, wire::decode_pull(encoded(message))); }
  Problem operator()(Acknowledge& message) const { return take(message, wire::decode_acknowledge(encoded(message))); }
  Problem operator()(Staged& message) const { return take(message, wire::decode_staged(encoded(message))); }
  Problem operator()(Commit& message) const { return take(message, wire::decode_commit(encoded(message))); }
  Problem operator()(PacerNews& message) const { return take(message, wire::decode_pacer_news(encoded(message))); }
  Problem operator()(Mark& message) const { return take(message, wire::decode_mark(encoded(message))); }
  Problem operator()(MarkTaken& message) const { return take(message, wire::decode_mark_taken(encoded(message))); }
  Problem operator()(Cut& message) const { return take(message, wire::decode_cut(encoded(message))); }

 private:
  template <typename Message>
  wire::Bytes encoded(const Message& message) const {
    return wire::encode(message, scratch);
  }
};

}  // namespace

Problem through_codec(Payload& payload) {
  thread_local wire::ScratchBuffer scratch;
  return std::visit(Trip{scratch}, payload);
}

Problem through_codec(Hello& hello) {
  return take(hello, wire::decode_hello(wire::encode(hello)));
}

}  // namespace disttrain::sim
