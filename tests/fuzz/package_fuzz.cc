// Packages of step programs: the table of a zip file, its members, the sidecar and the table of values. The checksum of
// a member is 4 bytes that libFuzzer finds only by chance, so an input that begins with "{" is a sidecar alone.
#include "common/program/package.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_input.h"

using namespace disttrain;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 0 && data[0] == '{') {
    (void)program::parse_sidecar(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
    return 0;
  }
  checkpoint::OneFile files(input::bytes_of(data, size));
  auto package = program::Package::open(files, "fuzz");
  if (!package) return 0;
  (void)package->verify_values();
  for (std::size_t i = 0; i < package->sidecar().variables.size(); ++i) (void)package->read(i);
  return 0;
}
