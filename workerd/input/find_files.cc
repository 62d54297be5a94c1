#include "workerd/input/find_files.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace disttrain::input {

namespace {

class Glob {
 public:
  explicit Glob(const std::string& pattern) { result_ = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found_); }
  ~Glob() { ::globfree(&found_); }
  Glob(const Glob&) = delete;
  Glob& operator=(const Glob&) = delete;

  int result() const { return result_; }
  std::vector<std::string> paths() const { return {found_.gl_pathv, found_.gl_pathv + found_.gl_pathc}; }

 private:
  glob_t found_{};
  int result_ = 0;
};

// The folder is taken as it is: what a glob would interpret in it is escaped.
std::string escape(const std::string& text) {
  std::string escaped;
  for (char c : text) {
    if (std::strchr("*?[]\\", c) != nullptr) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

}  // namespace

Result<std::vector<std::string>> find_files(const std::string& folder, const std::string& pattern,
                                            const std::string& key) {
  struct stat about {};
  if (::stat(folder.c_str(), &about) != 0) {
    const ErrorCode code = errno == EACCES ? ErrorCode::kNoPermission : ErrorCode::kNoInput;
    return fail(code,
                folder + ": can't open the data folder: " + std::strerror(errno) + ": correct the path of " + key);
  }
  if (!S_ISDIR(about.st_mode)) {
    return fail(ErrorCode::kNoInput, folder + ": isn't a folder, expected the folder in which the files of " + key +
                                         " are: correct the path");
  }
  const Glob glob(escape(folder) + "/" + pattern);
  if (glob.result() == GLOB_NOSPACE) return fail(ErrorCode::kConfig, folder + "/" + pattern + ": too many files match");
  std::vector<std::string> paths;
  if (glob.result() == 0) paths = glob.paths();
  if (paths.empty()) {
    return fail(ErrorCode::kNoInput, folder + ": no file matches " + key + " = \"" + pattern +
                                         "\", expected at least one: correct the path or the pattern");
  }
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    if (std::binary_search(paths.begin(), paths.end(), path + ".gz")) {
      return fail(ErrorCode::kConfig, path + ": " + key + " = \"" + pattern + "\" matches this file and also " + path +
                                          ".gz, its records would count twice: make the pattern name one of them");
    }
  }
  return paths;
}

}  // namespace disttrain::input
