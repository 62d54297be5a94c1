// Samples in tar files. A header has a checksum, which a fuzzer would rarely find, so this target writes it.
#include "input/tar_samples.h"
#include "tests/fuzz/fuzz.h"

using namespace disttrain::input;

namespace {

// Writes the checksum of each block of 512 bytes that may be a header: six octal digits, a zero and a blank.
void correct_checksums(std::span<std::byte> file) {
  constexpr std::size_t kAt = 148;
  for (std::size_t at = 0; at + 512 <= file.size(); at += 512) {
    const auto header = file.subspan(at, 512);
    if (std::memcmp(header.data() + 257, "ustar", 5) != 0) continue;
    std::memset(header.data() + kAt, ' ', 8);
    unsigned sum = 0;
    for (const std::byte byte : header) sum += std::to_integer<unsigned>(byte);
    for (std::size_t digit = 0; digit < 6; ++digit)
      header[kAt + digit] = static_cast<std::byte>('0' + (sum >> (3 * (5 - digit)) & 7));
    header[kAt + 6] = std::byte{0};
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<WantedColumn> wanted = {{"jpg;png", ValueKind::kBytes},
                                                   {"cls", ValueKind::kInteger},
                                                   {"txt", ValueKind::kFloat},
                                                   {"__key__", ValueKind::kBytes}};
  const auto input = bytes_of(data, size);
  const auto file = std::make_unique<std::byte[]>(size);
  std::copy(input.begin(), input.end(), file.get());
  correct_checksums({file.get(), size});
  for (const bool is_last : {false, true}) {
    const RecordBlock block = block_of({file.get(), size}, is_last);
    std::vector<RecordPlace> places;
    const auto covered = find_tar_samples(block, places);
    if (!covered) continue;
    check_places(block, places, *covered);
    Table table;
    if (decode_tar_samples(block, places, wanted, table)) check_table(table);
  }
  return 0;
}
