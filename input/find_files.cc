#include "input/find_files.h"

#include <dirent.h>
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

// Ends the work of glob() early. It makes each folder look as if it ended there.
class GlobLimit {
 public:
  GlobLimit(const IsCancelled& is_cancelled, std::uint64_t max_names)
      : is_cancelled_(is_cancelled), max_names_(max_names) {}

  // Counts a name. False: glob() must not get it.
  bool admit() {
    constexpr std::uint64_t kAskEvery = 256;  // names
    if (names_ == max_names_) is_exceeded_ = true;
    if (names_++ % kAskEvery == 0 && is_cancelled_ && is_cancelled_()) was_cancelled_ = true;
    return !is_over();
  }
  bool is_over() const { return is_exceeded_ || was_cancelled_; }
  bool is_exceeded() const { return is_exceeded_; }
  bool was_cancelled() const { return was_cancelled_; }

 private:
  const IsCancelled& is_cancelled_;
  const std::uint64_t max_names_;
  std::uint64_t names_ = 0;
  bool is_exceeded_ = false;
  bool was_cancelled_ = false;
};

// The limit of the glob() that this thread runs: glob() hands nothing of its caller to these functions.
thread_local GlobLimit* glob_limit = nullptr;

void* open_folder(const char* path) {
  return glob_limit->is_over() ? nullptr : ::opendir(path);
}
dirent* read_folder(void* folder) {
  dirent* const entry = ::readdir(static_cast<DIR*>(folder));
  return entry != nullptr && glob_limit->admit() ? entry : nullptr;
}
void close_folder(void* folder) {
  ::closedir(static_cast<DIR*>(folder));
}

class Glob {
 public:
  Glob(const std::string& pattern, GlobLimit& limit) {
    const Utf8Locale locale;
    found_.gl_opendir = open_folder;
    found_.gl_readdir = read_folder;
    found_.gl_closedir = close_folder;
    found_.gl_stat = ::stat;
    found_.gl_lstat = ::lstat;
    glob_limit = &limit;
    result_ = ::glob(pattern.c_str(), GLOB_NOSORT | GLOB_ALTDIRFUNC, nullptr, &found_);
    glob_limit = nullptr;
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

Result<std::vector<std::string>> find_files(const Source& source, const std::string& pattern, const std::string& key,
                                            std::uint64_t max_names) {
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
  GlobLimit limit(source.is_cancelled, max_names);
  const Glob glob(escape(folder) + "/" + pattern, limit);
  if (limit.was_cancelled())
    return fail(ErrorCode::kTemporary, "data folder \"" + folder + "\": looking for its files was cancelled");
  if (limit.is_exceeded() || glob.result() == GLOB_NOSPACE)
    return fail(ErrorCode::kConfig, "data folder \"" + folder + "\": " + key + " = \"" + pattern +
                                        "\" goes through too many names; expected folders with at most " +
                                        std::to_string(max_names) +
                                        " names in all, each counted as often as the pattern comes to it: name the "
                                        "folders in the pattern, and leave out \"..\"");
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
