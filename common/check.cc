#include "common/check.h"

#include <cstdio>
#include <cstdlib>

namespace disttrain::internal {

void (*on_failed_check)(const char*) = [](const char* sentence) { std::fprintf(stderr, "%s\n", sentence); };

void check_failed(const char* file, int line, const std::string& what) {
  on_failed_check((std::string(file) + ":" + std::to_string(line) + ": check failed: " + what).c_str());
  std::abort();
}

}  // namespace disttrain::internal
