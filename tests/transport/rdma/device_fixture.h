// Two ends that are joined by RDMA. Tests with this fixture need a device; tests/rdma makes one.
#pragma once

#include <cstdio>
#include <sstream>
#include <string>

#include "tests/transport/two_ends.h"
#include "transport/rdma/device.h"
#include "transport/rdma/transport.h"

namespace disttrain::transport {

class Rdma : public TwoEnds {
 protected:
  void SetUp() override {
    if (!has_rdma_devices()) GTEST_SKIP() << "this host has no RDMA device";
    listen(transport, "10.77.0.2:0");
  }

  RdmaTransport transport{RdmaOptions{.cluster = "test", .is_required = true, .tcp = {}}};
};

// What a command writes.
inline std::string output_of(const std::string& command) {
  std::FILE* const shows = ::popen((command + " 2>&1").c_str(), "r");
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), shows));
  ::pclose(shows);
  return text;
}

// The kernel's counts of RDMA objects on this host: "0: rxe0: pd 1 cq 1 qp 1 cm_id 0 mr 0 ctx 0", a line for each
// device.
inline std::string rdma_resources() {
  return output_of("rdma resource show");
}

// The number of memory regions on all devices.
inline int registrations() {
  std::istringstream words(rdma_resources());
  int count = 0;
  for (std::string word; words >> word;)
    if (int n = 0; word == "mr" && words >> n) count += n;
  return count;
}

}  // namespace disttrain::transport
