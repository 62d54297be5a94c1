#include "common/check.h"

#include <cstdio>
#include <cstdlib>

namespace disttrain::internal {

void check_failed(const char* file, int line, const std::string& what) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, what.c_str());
  std::abort();
}

}  // namespace disttrain::internal
