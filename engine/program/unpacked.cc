#include "engine/program/unpacked.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

namespace disttrain::workerd {
namespace {

Status write_file(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  if (file) return {};
  return fail(ErrorCode::kFailed, "can't write the program's library to " + path + ": " + std::strerror(errno) +
                                      "; free some space there, or set TMPDIR to another folder");
}

}  // namespace

Result<UnpackedProgram> UnpackedProgram::make(program::PackageFile& package, const std::string& program) {
  const std::string place = "data/aotinductor/" + program + "/" + program + ".wrapper";
  const program::Member* library = package.find(place + ".so");
  if (library == nullptr)
    return fail(ErrorCode::kData, package.path() + " has no compiled program \"" + program +
                                      "\"; export the model again with disttrain.export");
  Result<std::string> content = package.read(*library, kMaxLibraryBytes);
  if (!content) return tl::unexpected(content.error());

  const char* chosen = std::getenv("TMPDIR");
  std::string folder =
      std::string(chosen != nullptr && *chosen != '\0' ? chosen : "/tmp") + "/disttrain-program-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr)
    return fail(ErrorCode::kFailed, "can't make the folder " + folder + " for the library of " + package.path() + ": " +
                                        std::strerror(errno) + "; set TMPDIR to a folder that can be written");
  UnpackedProgram unpacked(folder);
  if (Status written = write_file(unpacked.library(), *content); !written) return tl::unexpected(written.error());
  const program::Member* table = package.find(place + ".json");
  if (table == nullptr) return unpacked;
  content = package.read(*table, kMaxLibraryBytes);
  if (!content) return tl::unexpected(content.error());
  if (Status written = write_file(folder + "/program.json", *content); !written) return tl::unexpected(written.error());
  return unpacked;
}

UnpackedProgram::~UnpackedProgram() {
  if (folder_.empty()) return;
  std::error_code ignored;  // a folder that stays in /tmp does no harm
  std::filesystem::remove_all(folder_, ignored);
}

}  // namespace disttrain::workerd
