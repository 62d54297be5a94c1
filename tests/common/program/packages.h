// Step programs for tests: the packages that tests/data/program/make.py made, and variants of them with changed
// members.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>

#include "common/checkpoint/disk_files.h"
#include "common/program/package_file.h"

namespace disttrain::program::test {

// DISTTRAIN_PROGRAMS is the folder into which the build unpacks tests/data/program/packages.tar.xz.
inline std::string made(const std::string& name) {
  return std::string(DISTTRAIN_PROGRAMS) + "/" + name;
}

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_file(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
}

using Members = std::map<std::string, std::string>;  // name -> content

// The content of a zip file with these members, stored without compression.
inline std::string zip_of(const Members& members) {
  std::string file;
  std::string directory;
  const auto add = [](std::string& to, std::uint64_t number, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) to += static_cast<char>(number >> (8 * i));
  };
  for (const auto& [name, content] : members) {
    const std::uint64_t begin = file.size();
    std::string common;  // what both headers have
    add(common, 20, 2);  // version
    add(common, 0, 2);   // flags
    add(common, 0, 2);   // method: stored
    add(common, 0, 4);   // time
    add(common, crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size())), 4);
    add(common, content.size(), 4);
    add(common, content.size(), 4);
    add(common, name.size(), 2);
    add(common, 0, 2);  // extra
    add(file, 0x04034b50, 4);
    file += common + name + content;
    add(directory, 0x02014b50, 4);
    add(directory, 20, 2);
    directory += common;
    add(directory, 0, 10);  // comment, disk, attributes
    add(directory, begin, 4);
    directory += name;
  }
  const std::uint64_t begin = file.size();
  file += directory;
  add(file, 0x06054b50, 4);
  add(file, 0, 4);
  add(file, members.size(), 2);
  add(file, members.size(), 2);
  add(file, directory.size(), 4);
  add(file, begin, 4);
  add(file, 0, 2);
  return file;
}

// The members of a package that a test may change.
inline Members members_of(const std::string& path) {
  checkpoint::DiskFiles files;
  Result<PackageFile> package = PackageFile::open(files, path);
  Members members;
  for (const char* name :
       {"disttrain.json", "disttrain.safetensors", "data/aotinductor/step/step.wrapper.so",
        "data/aotinductor/evaluate/evaluate.wrapper.so", "data/aotinductor/predict/predict.wrapper.so"})
    if (const Member* member = package->find(name); member != nullptr)
      members["p/" + std::string(name)] = *package->read(*member, std::uint64_t{1} << 30);
  return members;
}

// Replaces the first `old` in a text.
inline void replace(std::string& text, const std::string& old, const std::string& by) {
  text.replace(text.find(old), old.size(), by);
}

// A folder that is removed at the end of the test.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "disttrain-test-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string write(const std::string& name, const std::string& content) const {
    write_file(path_ + "/" + name, content);
    return path_ + "/" + name;
  }

 private:
  std::string path_;
};

}  // namespace disttrain::program::test
