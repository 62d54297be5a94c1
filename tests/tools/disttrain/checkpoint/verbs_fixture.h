// Runs the verbs of `disttrain checkpoint`, as the real program, on checkpoints that the library wrote.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "common/checkpoint/disk_files.h"
#include "tests/common/checkpoint/small_job.h"
#include "tests/shell_word.h"

namespace disttrain::checkpoint {

namespace fs = std::filesystem;
using Json = nlohmann::json;

struct Ran {
  int code = -1;
  std::string out;
  std::string error;

  Json json() const { return Json::parse(out, nullptr, false); }
};

inline std::string content_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

inline std::string plain_safetensors() {
  return shell_word(DISTTRAIN_PYTHON) + " " + shell_word(DISTTRAIN_PLAIN_SAFETENSORS);
}

class CheckpointVerbs : public testing::Test {
 protected:
  CheckpointVerbs() {
    std::string pattern = (fs::temp_directory_path() / "disttrain-verbs-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    fs::create_directories(folder_ / "all/small");
  }
  ~CheckpointVerbs() override { fs::remove_all(folder_); }

  std::string job() const { return (folder_ / "all/small").string(); }
  std::string out(const std::string& name) const { return (folder_ / name).string(); }

  // Saves a checkpoint of the small job. Element i of its flat order has the value step + i.
  std::string saved(std::uint64_t step, std::uint32_t shards = 2, const std::string& job_name = "small",
                    std::uint32_t slots = 1) {
    const fs::path folder = folder_ / "all" / job_name;
    fs::create_directories(folder);
    const auto path = save(files_, folder.string(), layout_of(small_model(), shards, 5), 3, step, slots);
    EXPECT_TRUE(path) << path.error().message;
    return path.value_or("");
  }
  void damage(const std::string& path, std::streamoff at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(at);
    file.put(byte);
  }

  // Runs a command in this test's folder. `command` may contain the path of that folder, even if the path has spaces.
  Ran shell(std::string command) {
    const std::string folder = folder_.string();
    for (std::size_t at = command.find(folder); at != std::string::npos; at = command.find(folder, at + 1)) {
      command.replace(at, folder.size(), shell_word(folder));
      at += shell_word(folder).size() - 1;
    }
    const std::string whole = "cd " + shell_word(folder) + " && " + command + " >.out 2>.error";
    const int status = std::system(whole.c_str());
    Ran ran{WIFEXITED(status) ? WEXITSTATUS(status) : -1, content_of(folder_ / ".out"), content_of(folder_ / ".error")};
    fs::remove(folder_ / ".out");
    fs::remove(folder_ / ".error");
    return ran;
  }
  Ran run(const std::string& arguments) { return shell(shell_word(DISTTRAIN_PROGRAM) + " checkpoint " + arguments); }
  // Reads a file with a program that shares no code with ours.
  Json read_plainly(const std::string& path) {
    const Ran ran = shell(plain_safetensors() + " read " + path);
    EXPECT_EQ(ran.code, 0) << ran.error;
    return ran.json();
  }
  std::vector<std::string> names_in(const fs::path& folder) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  DiskFiles files_;
  fs::path folder_;
};

}  // namespace disttrain::checkpoint
