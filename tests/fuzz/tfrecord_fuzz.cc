// TFRecord files of tf.Example messages. A fuzzer would never find a valid checksum, so this target writes the
// checksums.
#include "input/tfrecord.h"

#include <bit>

#include "tests/fuzz/fuzz.h"
#include "transport/wire/checksum.h"

using namespace disttrain::input;

namespace {

void write_checksum(std::span<const std::byte> of, std::byte* to) {
  const std::uint32_t masked = std::rotr(disttrain::wire::crc32c(of), 15) + 0xa282ead8U;
  std::memcpy(to, &masked, sizeof(masked));
}

void correct_checksums(std::span<std::byte> file) {
  std::size_t at = 0;
  while (file.size() - at >= 12) {
    std::uint64_t length = 0;
    std::memcpy(&length, file.data() + at, sizeof(length));
    write_checksum(file.subspan(at, 8), file.data() + at + 8);
    at += 12;
    if (length > file.size() - at || file.size() - at - length < 4) return;
    write_checksum(file.subspan(at, length), file.data() + at + length);
    at += length + 4;
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<WantedColumn> wanted = {{"pixels", ValueKind::kFloat},
                                                   {"age", ValueKind::kInteger},
                                                   {"job", ValueKind::kBytes},
                                                   {"age", ValueKind::kFloat},
                                                   {"a", ValueKind::kInteger}};
  const auto input = bytes_of(data, size);
  const auto file = std::make_unique<std::byte[]>(size);
  std::copy(input.begin(), input.end(), file.get());
  for (const bool is_correct : {false, true}) {
    if (is_correct) correct_checksums({file.get(), size});
    for (const bool is_last : {false, true}) {
      const RecordBlock block = block_of({file.get(), size}, is_last);
      std::vector<RecordPlace> places;
      const auto covered = find_tfrecords(block, places);
      if (!covered) continue;
      check_places(block, places, *covered);
      Table table;
      if (decode_examples(block, places, wanted, table)) check_table(table);
    }
  }
  return 0;
}
