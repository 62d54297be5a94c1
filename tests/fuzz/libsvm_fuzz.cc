// Lines of libsvm files.
#include "input/libsvm.h"

#include "input/lines.h"
#include "tests/fuzz/fuzz.h"

using namespace disttrain::input;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<WantedColumn> wanted[] = {{{"label", ValueKind::kInteger}, {"features", ValueKind::kFloat}},
                                                     {{"features", ValueKind::kFloat}, {"label", ValueKind::kFloat}},
                                                     {{"label", ValueKind::kBytes}}};
  for (const bool is_last : {false, true}) {
    const RecordBlock block = block_of(bytes_of(data, size), is_last);
    std::vector<RecordPlace> places;
    const auto covered = find_lines(block, places);
    if (!covered) continue;
    check_places(block, places, *covered);
    if (is_last) DISTTRAIN_CHECK_EQ(*covered, size);
    Table table;
    for (const auto& columns : wanted)
      if (decode_libsvm(block, places, columns, {.width = 7, .one_based = is_last}, table)) check_table(table);
  }
  return 0;
}
