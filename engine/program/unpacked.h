// Copies the shared library of a compiled program from its package to a file, because a library is loaded by its path.
#pragma once

#include <string>

#include "common/program/package_file.h"
#include "common/result.h"

namespace disttrain::workerd {

inline constexpr std::uint64_t kMaxLibraryBytes = 4ULL * 1024 * 1024 * 1024;

// Owns a folder in the system's folder for temporary files, and removes it at its end.
class UnpackedProgram {
 public:
  // Copies the library of "step", "step_0", "evaluate" or "predict", and the table of operators that AOTInductor puts
  // beside some libraries. Fails with kData if the package doesn't have the library or it is damaged, and with kFailed
  // if it can't be written.
  static Result<UnpackedProgram> make(program::PackageFile& package, const std::string& program);

  UnpackedProgram(UnpackedProgram&& other) noexcept : folder_(std::move(other.folder_)) { other.folder_.clear(); }
  UnpackedProgram& operator=(UnpackedProgram&&) = delete;
  ~UnpackedProgram();

  // The library's path. AOTInductor looks for the table at the same path with the ending .json.
  std::string library() const { return folder_ + "/program.so"; }

 private:
  explicit UnpackedProgram(std::string folder) : folder_(std::move(folder)) {}
  std::string folder_;
};

}  // namespace disttrain::workerd
