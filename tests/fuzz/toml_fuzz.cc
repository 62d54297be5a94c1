// job.toml and cluster.toml.
#include "common/config/reader/reader.h"
#include "tests/fuzz/fuzz.h"

using namespace disttrain;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto job = config::read_job(text)) {
    const auto again = config::read_job(config::job_toml(*job));
    // A document with all keys has some that the job's rule, kind or mode doesn't use.
    if (again) DISTTRAIN_CHECK(config::job_toml(*again) == config::job_toml(*job));
  }
  (void)config::parse_cluster(text, "fuzz");
  return 0;
}
