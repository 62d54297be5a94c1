#include "workerd/input/find_files.h"

#include <glob.h>
#include <locale.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace disttrain::input {

namespace {

// In this locale a "?" of a pattern stands for a character of UTF-8. In that of the process, "C", it stands for a byte.
// Names that aren't UTF-8 are still matched by their bytes. glibc has this locale inside.
class Utf8Locale {
 public:
  Utf8Locale() : locale_(::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {
    if (locale_ != nullptr) before_ = ::uselocale(locale_);
  }
  ~Utf8Locale() {
    if (locale_ == nullptr) return;
    ::uselocale(before_);
    ::freelocale(locale_);
  }
  Utf8Locale(const Utf8Locale&) = delete;
  Utf8Locale& operator=(const Utf8Locale&) = delete;

 private:
  locale_t locale_ = nullptr;
  locale_t before_ = nullptr;
};

class Glob {
 public:
  explicit Glob(const std::string& pattern) {
    const Utf8Locale locale;
    result_ = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found_);
  }
  ~Glob() { ::globfree(&found_); }
  Glob(const Glob&) = delete;
  Glob& operator=(const Glob&) = delete;

  int result() const { return result_; }
  std::vector<std::string> paths() const { return {found_.gl_pathv, found_.gl_pathv + found_.gl_pathc}; }

 private:
  glob_t found_{};
  int result_ = 0;
};

// Escapes the special characters in a folder's name, because glob() would interpret them.
std::string escape(const std::string& text) {
  std::string escaped;
  for (char c : text) {
    if (std::strchr("*?[]\\", c) != nullptr) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

}  // namespace

Result<std::vector<std::string>> find_files(const Source& source, const std::string& pattern, const std::string& key) {
  const std::string& folder = source.path;
  const auto refuse = [&source](ErrorCode code, const std::string& what) {
    return fail(code, "data folder \"" + source.path + "\" " + what + "; set " + source.path_key +
                          " to a folder that holds the files");
  };
  struct stat about {};
  if (::stat(folder.c_str(), &about) != 0) {
    if (errno == ENOENT) return refuse(ErrorCode::kNoInput, "doesn't exist");
    return refuse(errno == EACCES ? ErrorCode::kNoPermission : ErrorCode::kNoInput,
                  std::string("can't be opened: ") + std::strerror(errno));
  }
  if (!S_ISDIR(about.st_mode)) return refuse(ErrorCode::kNoInput, "isn't a folder");
  const Glob glob(escape(folder) + "/" + pattern);
  if (glob.result() == GLOB_NOSPACE)
    return fail(ErrorCode::kConfig, folder + "/" + pattern + ": the pattern matches too many files");
  std::vector<std::string> paths;
  if (glob.result() == 0) paths = glob.paths();
  if (paths.empty() && ::access(folder.c_str(), R_OK | X_OK) != 0)
    return refuse(errno == EACCES ? ErrorCode::kNoPermission : ErrorCode::kNoInput,
                  std::string("can't be read: ") + std::strerror(errno));
  if (paths.empty()) {
    return fail(ErrorCode::kNoInput, "data folder \"" + folder + "\" has no file that matches " + key + " = \"" +
                                         pattern + "\"; correct the pattern, or set " + source.path_key +
                                         " to the folder that holds the files");
  }
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    for (const char* const end : {".gz", ".zst"}) {
      if (!std::binary_search(paths.begin(), paths.end(), path + end)) continue;
      return fail(ErrorCode::kConfig,
                  path + ": " + key + " = \"" + pattern + "\" matches this file and also " + path + end +
                      ", so its records would count twice: change the pattern to match only one of them");
    }
  }
  return paths;
}

}  // namespace disttrain::input
