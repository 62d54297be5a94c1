// Calls a fuzz target once with each file of the folders in its arguments. So the inputs that a fuzzer has found are
// tested with any compiler.
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "tests/fuzz/fuzz.h"

int main(int count, char** folders) {
  disttrain::input::takes_all_cases = true;
  int files = 0;
  for (int i = 1; i < count; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(folders[i])) {
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string content(std::istreambuf_iterator<char>(in), {});
      const auto exact = std::make_unique<std::uint8_t[]>(content.size());
      std::memcpy(exact.get(), content.data(), content.size());
      LLVMFuzzerTestOneInput(exact.get(), content.size());
      ++files;
    }
  }
  std::printf("%d inputs\n", files);
  return files > 0 ? 0 : 1;
}
