// Messages of a trainer.
#include "engine/trainer/trainer_protocol.h"
#include "tests/fuzz/fuzz.h"

using namespace disttrain;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  workerd::RawMessage raw;
  raw.text.assign(reinterpret_cast<const char*>(data), size);
  (void)workerd::parse_trainer_message(raw);
  return 0;
}
