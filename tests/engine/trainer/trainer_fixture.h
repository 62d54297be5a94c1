// Runs trainers, which are Python scripts, through a TrainerEngine, as a worker's step thread would.
#pragma once

#include <asio/io_context.hpp>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "common/layout.h"
#include "common/os/arena.h"
#include "engine/trainer/trainer_engine.h"

namespace disttrain::workerd::test {

// A layout of one shard with a bucket for each variable, in reverse order.
Layout layout_of(const ModelSpec& model);

class TrainerFixture : public EngineSink {
 public:
  TrainerFixture();
  ~TrainerFixture() override;

  // Writes the script into the folder of the test, for make().
  void write(const std::string& script);
  // The same, after the imports and a line that makes `connection`, a bare socket that speaks the protocol.
  void write_raw(const std::string& script);
  // Makes the engine with the script as its trainer.
  Status make();
  // Takes memory and calls open().
  Status open();
  // Runs a computation to its end. `next`: the records that the next step will probably have.
  Result<EngineOutput> run(Program program, const std::vector<std::int64_t>& records, std::uint64_t step = 1,
                           const std::vector<std::int64_t>& next = {});

  void ready(std::uint64_t begin, std::uint64_t end) override;
  void finished(const Result<EngineOutput>& output) override;

  std::filesystem::path folder;
  asio::io_context loop;
  Arena arena{ArenaKind::kShared};
  TrainerOptions options;
  bool cancelled = false;
  std::uint32_t checkpoints = 0;
  std::vector<std::string> lines;  // what the trainer printed
  Layout layout;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;  // the ready ranges of the newest step
  std::unique_ptr<Memory> parameters;
  std::unique_ptr<Memory> gradients;
  std::unique_ptr<TrainerEngine> engine;
  std::optional<Result<EngineOutput>> output;
};

}  // namespace disttrain::workerd::test
