#include "tests/engine/trainer/trainer_fixture.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>

namespace disttrain::workerd::test {

using namespace std::chrono_literals;

Layout layout_of(const ModelSpec& model) {
  Layout layout;
  layout.model = model;
  layout.shards = 1;
  layout.variable_begins.resize(model.variables.size());
  std::uint64_t begin = 0;
  for (const DType dtype : {DType::kFloat64, DType::kFloat32})
    for (std::size_t v = model.variables.size(); v-- > 0;) {
      if (model.variables[v].dtype != dtype) continue;
      const std::uint64_t words = word_count(model.variables[v]);
      layout.variable_begins[v] = begin;
      layout.buckets.push_back(Bucket{ShardId(0), begin, begin, words});
      begin += words;
    }
  return layout;
}

TrainerFixture::TrainerFixture() {
  std::string name = (std::filesystem::temp_directory_path() / "disttrain-trainer-XXXXXX").string();
  folder = ::mkdtemp(name.data());
  ::setenv("PYTHONPATH", DISTTRAIN_PYTHON_FOLDER, 1);
  ::setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
  options.command.argv = {DISTTRAIN_PYTHON, "train.py"};
  options.command.folder = folder.string();
  options.batch_size = 4;
  options.start_timeout = 60s;
  options.answer_timeout = 60s;
  options.end_timeout = 200ms;
}

TrainerFixture::~TrainerFixture() {
  engine.reset();
  std::filesystem::remove_all(folder);
}

void TrainerFixture::write(const std::string& script) {
  std::ofstream(folder / "train.py") << script;
}

void TrainerFixture::write_raw(const std::string& script) {
  write(R"(
import json, os, signal, socket, struct, sys, time
connection = socket.socket(fileno=int(os.environ["DISTTRAIN_TRAINER"]))
def send(**message):
    text = json.dumps(message).encode()
    connection.sendall(struct.pack("<II", len(text), 0) + text)
def receive():
    text, payload = struct.unpack("<II", connection.recv(8, socket.MSG_WAITALL))
    return json.loads(connection.recv(text, socket.MSG_WAITALL))
def describe(**changes):
    send(type="hello", protocol=1, sdk="raw")
    receive()
    send(**{"type": "describe", "variables": [["w", [2, 3], "trainable"]], "metrics": ["accuracy"], "records": 100,
            "evaluation_records": 0, "evaluates": True, "predicts": True, "clears_ahead": False, **changes})
)" + script);
}

Status TrainerFixture::make() {
  auto made = TrainerEngine::make(options, TrainerWorld{.loop = loop,
                                                        .arena = arena,
                                                        .is_cancelled = [this] { return cancelled; },
                                                        .on_line = [this](const auto& line) { lines.push_back(line); },
                                                        .on_checkpoint = [this] { ++checkpoints; },
                                                        .worker_count = [] { return 3U; }});
  if (!made) return tl::unexpected(made.error());
  engine = std::move(*made);
  return {};
}

Status TrainerFixture::open() {
  layout = layout_of(engine->describe());
  const std::uint64_t bytes = word_count(layout.model) * sizeof(float);
  parameters = std::make_unique<Memory>(arena, bytes, Paging::kTouched);
  gradients = std::make_unique<Memory>(arena, bytes, Paging::kTouched);
  return engine->open(layout, parameters->floats(), gradients->floats());
}

Result<EngineOutput> TrainerFixture::run(Program program, const std::vector<std::int64_t>& records, std::uint64_t step,
                                         const std::vector<std::int64_t>& next) {
  const ColumnValues column{std::as_bytes(std::span(records)), {}};
  const ColumnValues next_column{std::as_bytes(std::span(next)), {}};
  output.reset();
  ranges.clear();
  engine->start({program, Batch{records.size(), std::span(&column, 1)}, StepSeed{7, step, 2},
                 Batch{next.size(), std::span(&next_column, 1)}},
                *this);
  while (!output) {
    loop.restart();
    loop.run_one();
  }
  return *output;
}

void TrainerFixture::ready(std::uint64_t begin, std::uint64_t end) {
  ranges.emplace_back(begin, end);
  loop.poll();
}

void TrainerFixture::finished(const Result<EngineOutput>& result) {
  EXPECT_FALSE(output.has_value());
  output = result;
}

}  // namespace disttrain::workerd::test
