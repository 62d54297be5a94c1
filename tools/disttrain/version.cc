#include <iostream>

#include "common/daemon/startup.h"
#include "common/messages/session.h"
#include "tools/disttrain/verbs.h"

namespace disttrain::cli {

int version() {
  std::cout << "disttrain " << daemon::kVersion << ", protocol " << kProtocolVersion << '\n';
  return 0;
}

}  // namespace disttrain::cli
