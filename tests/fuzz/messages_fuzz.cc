// Messages of other processes, as each of the kinds that a decoder expects.
#include <cstring>

#include "tests/fuzz/fuzz.h"
#include "transport/wire/codec.h"

using namespace disttrain::wire;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = disttrain::input::bytes_of(data, size);
  (void)decode_control(FrameType::kBlob, {}, bytes);
  (void)decode_control(FrameType::kControl, bytes, {});
  (void)decode_hello(bytes);
  (void)decode_hello_answer(FrameType::kWelcome, bytes);
  (void)decode_hello_answer(FrameType::kRefused, bytes);
  (void)decode_push(bytes);
  (void)decode_pull(bytes);
  (void)decode_parameters(bytes);
  (void)decode_acknowledge(bytes);
  (void)decode_staged(bytes);
  (void)decode_commit(bytes);
  (void)decode_pacer_news(bytes);
  (void)decode_mark(bytes);
  (void)decode_mark_taken(bytes);
  (void)decode_cut(bytes);
  return 0;
}
