// Parquet files. Arrow reads files by their path, so the input becomes a file in memory. Arrow's libraries aren't
// instrumented: the fuzzer sees only which code of ours an input reaches.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "common/os/descriptor.h"
#include "tests/fuzz/fuzz.h"
#include "workerd/input/parquet/parquet_file.h"

using namespace disttrain::input;

// Arrow's own allocators would hide wrong accesses from AddressSanitizer.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  return ::setenv("ARROW_DEFAULT_MEMORY_POOL", "system", 1);
}

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Those of tests/data/parquet. A column may be taken as several kinds.
  static const std::vector<WantedColumn> wanted[] = {
      {{"age", ValueKind::kFloat}},
      {{"age", ValueKind::kInteger}, {"small", ValueKind::kFloat}, {"weight", ValueKind::kFloat}},
      {{"age", ValueKind::kBytes}, {"is_new", ValueKind::kInteger}, {"job", ValueKind::kBytes}},
      {{"kind", ValueKind::kBytes}, {"pixels", ValueKind::kFloat}, {"day", ValueKind::kInteger}},
      {{"words", ValueKind::kBytes}, {"point", ValueKind::kInteger}, {"large", ValueKind::kBytes}}};
  const disttrain::Descriptor file(::memfd_create("fuzz", MFD_CLOEXEC));
  for (std::size_t done = 0; done < size;) {
    const ssize_t wrote = ::write(file.get(), data + done, size - done);
    DISTTRAIN_CHECK(wrote > 0);
    done += static_cast<std::size_t>(wrote);
  }
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  for (const std::vector<WantedColumn>& columns : wanted) {
    const auto opened = ParquetFile::open(path, columns);
    if (!opened) continue;
    for (std::size_t group = 0; group < std::min<std::size_t>((*opened)->groups().size(), 10); ++group) {
      if (!(*opened)->start(group)) continue;
      Table table;
      // A small file may have billions of equal records.
      for (int tables = 0; tables < 20; ++tables) {
        const disttrain::Result<bool> more = (*opened)->next(table);
        if (!more.has_value() || !*more) break;
        check_table(table);
      }
    }
  }
  return 0;
}
