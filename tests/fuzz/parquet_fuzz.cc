// Parquet files. Arrow reads files by their path, so the input becomes a file in memory. Arrow's libraries aren't
// instrumented: the fuzzer sees only which code of ours an input reaches.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <iterator>

#include "common/os/descriptor.h"
#include "input/parquet/parquet_file.h"
#include "tests/fuzz/fuzz.h"

using namespace disttrain::input;

// Arrow's own allocators would hide wrong accesses from AddressSanitizer.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  return ::setenv("ARROW_DEFAULT_MEMORY_POOL", "system", 1);
}

namespace {

// Those of tests/data/parquet. A column may be taken as several kinds.
const std::vector<WantedColumn> kWanted[] = {
    {{"age", ValueKind::kFloat}},
    {{"age", ValueKind::kInteger}},
    {{"age", ValueKind::kBytes}},
    {{"age", ValueKind::kInteger}, {"small", ValueKind::kFloat}, {"weight", ValueKind::kFloat}},
    {{"age", ValueKind::kBytes}, {"is_new", ValueKind::kInteger}, {"job", ValueKind::kBytes}},
    {{"kind", ValueKind::kBytes}, {"pixels", ValueKind::kFloat}},
    {{"day", ValueKind::kInteger}, {"words", ValueKind::kBytes}},
    {{"point", ValueKind::kInteger}, {"large", ValueKind::kBytes}},
    {{"job", ValueKind::kBytes}},
    {{"pixels", ValueKind::kFloat}}};

void read_all(ParquetFile& file) {
  for (std::size_t group = 0; group < std::min<std::size_t>(file.groups().size(), 10); ++group) {
    if (!file.start(group)) continue;
    Table table;
    // A small file may have billions of equal records.
    for (int tables = 0; tables < 20; ++tables) {
      const disttrain::Result<bool> more = file.next(table);
      if (!more.has_value() || !*more) break;
      check_table(table);
    }
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // All inputs use the same file: a new one would cost more than reading it.
  static const disttrain::Descriptor file(::memfd_create("fuzz", MFD_CLOEXEC));
  static const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  DISTTRAIN_CHECK_EQ(::ftruncate(file.get(), 0), 0);
  DISTTRAIN_CHECK_EQ(::pwrite(file.get(), data, size, 0), static_cast<ssize_t>(size));
  // Parquet ignores the first byte.
  for_each_case(size == 0 ? 0 : data[0], std::size(kWanted), [](std::size_t i) {
    const auto opened = ParquetFile::open(path, kWanted[i]);
    if (opened) read_all(**opened);
  });
  return 0;
}
