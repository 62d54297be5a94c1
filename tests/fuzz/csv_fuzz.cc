// The columns of csv files, by name or by number.
#include "input/csv_rows.h"

#include "tests/fuzz/fuzz.h"

using namespace disttrain::input;

namespace {

void read_columns(std::span<const std::byte> bytes, const std::vector<WantedColumn>& wanted, bool has_header,
                  bool is_last) {
  const RecordBlock block = block_of(bytes, is_last);
  const auto header = read_csv_header(block, wanted, has_header);
  if (!header.has_value() || !header->has_value()) return;
  DISTTRAIN_CHECK((*header)->bytes <= bytes.size());
  RecordBlock rows = block;
  rows.bytes = bytes.subspan((*header)->bytes);
  std::vector<RecordPlace> places;
  const auto covered = find_csv_rows(rows, places);
  if (!covered) return;
  check_places(rows, places, *covered);
  if (is_last) DISTTRAIN_CHECK_EQ(*covered, rows.bytes.size());
  Table table;
  if (decode_csv_rows(rows, places, **header, wanted, table)) check_table(table);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<WantedColumn> named = {
      {"a", ValueKind::kFloat, {"?"}}, {"b", ValueKind::kBytes}, {"a", ValueKind::kBytes}};
  static const std::vector<WantedColumn> numbered = {
      {"1", ValueKind::kFloat}, {"0", ValueKind::kBytes}, {"2", ValueKind::kInteger}};
  const auto bytes = bytes_of(data, size);
  for (const bool is_last : {false, true}) {
    read_columns(bytes, named, true, is_last);
    read_columns(bytes, numbered, false, is_last);
  }
  return 0;
}
