// Lines of jsonl files.
#include "input/jsonl.h"

#include "input/lines.h"
#include "tests/fuzz/fuzz.h"

using namespace disttrain::input;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static JsonlDecoder decoder({{"x", ValueKind::kFloat},
                               {"x", ValueKind::kBytes},
                               {"y", ValueKind::kInteger},
                               {"w", ValueKind::kBytes},
                               {"a.b", ValueKind::kFloat},
                               {"a.c.d", ValueKind::kBytes}});
  static JsonlDecoder numbers({{"x", ValueKind::kFloat}, {"a", ValueKind::kInteger}});
  for (const bool is_last : {false, true}) {
    const RecordBlock block = block_of(bytes_of(data, size), is_last);
    std::vector<RecordPlace> places;
    const auto covered = find_lines(block, places);
    if (!covered) continue;
    Table table;
    if (decoder.decode(block, places, table)) check_table(table);
    if (numbers.decode(block, places, table)) check_table(table);
  }
  return 0;
}
