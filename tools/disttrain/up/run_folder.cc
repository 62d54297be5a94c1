#include "tools/disttrain/up/run_folder.h"

#include <cerrno>
#include <cstdlib>

#include "transport/tcp/socket.h"

namespace disttrain::cli {

namespace fs = std::filesystem;

Result<fs::path> make_run_folder() {
  std::error_code error;
  const fs::path base = fs::temp_directory_path(error);
  std::string pattern = (base / "disttrain-XXXXXX").string();
  if (error || mkdtemp(pattern.data()) == nullptr)
    return fail(ErrorCode::kNoPermission, "can't create a run folder " + pattern + ": " +
                                              transport::system_words(errno) + "; set TMPDIR to a folder of your own");
  return fs::path(pattern);
}

}  // namespace disttrain::cli
