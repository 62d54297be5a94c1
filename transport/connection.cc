#include "transport/connection.h"

namespace disttrain::transport {

bool proves_nobody_listens(const Error& error) {
  return error.code == ErrorCode::kUnavailable && error.message.find("connection refused") != std::string::npos;
}

}  // namespace disttrain::transport
