// The messages between a worker and its trainer, and the checks of everything that a trainer says. message_socket.h
// carries them. python/disttrain/cluster_job.py is the trainer's side.
//
//   trainer -> worker                        worker -> trainer
//   hello      who speaks, once              welcome   the job's columns, batch size and seed
//   describe   the model, once               open      the places of the variables in the flat arrays
//   values     the answer to `values`        values    asks for the initial values
//   ready      an early range of gradients   start     a computation
//   finished   the answer to `start`         end       the job is over
//   checkpoint asks for a checkpoint
//   failed     a sentence, before it ends
//
// After `describe` the trainer waits for messages of the worker, and answers `values` and `start`.
//
// A variable in `describe` is [name, shape, kind, dtype] or, if it has bounds, [name, shape, kind, dtype, low, high].
//
// A place in the flat arrays is a number of words of 4 bytes, as in common/layout.h.
//
// Shared memory: a message of the worker that has the key `blocks`, a list of [number, bytes], brings as many
// descriptors, one file for each block. The key `drop` lists blocks that the worker has released. A place is
// [block, offset in bytes]; a part is [block, offset, bytes].
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/model.h"
#include "common/os/arena.h"
#include "common/result.h"
#include "engine/engine.h"
#include "engine/trainer/message_socket.h"

namespace disttrain::workerd {

// Grows with each change that an older package or worker wouldn't understand, such as another key of a message: a
// worker refuses a message that lacks a key, and the package reads most keys without a default. Since the first
// release, each change of the keys needs a new number here and in python/disttrain/connection.py. The list of keys is
// tests/engine/trainer/protocol_keys.json.
inline constexpr std::uint32_t kTrainerProtocol = 1;

// The name of the only column of a trainer that reads its own data set: the number of the record.
inline constexpr char kRecordColumn[] = "record";

inline constexpr std::size_t kMaxVariableNameBytes = 500;

struct TrainerHello {
  std::string sdk;  // the version of the package disttrain
};

struct TrainerModel {
  std::vector<VariableSpec> variables;
  std::vector<MetricSpec> metrics;  // all of kind kMean
  Programs programs;
  std::uint64_t records = 0;             // of the trainer's own training set; 0: the job has [data]
  std::uint64_t evaluation_records = 0;  // of the trainer's own evaluation set; 0: it has none
  bool clears_ahead = false;             // Engine::clears_gradients_ahead()

  bool operator==(const TrainerModel&) const = default;
};

struct TrainerValues {};

struct TrainerReady {
  std::uint64_t number = 0;  // that of the `start`
  std::uint64_t end = 0;     // the gradients at all flat words before this one are final
};

struct TrainerFinished {
  std::uint64_t number = 0;  // that of the `start`
  double loss_sum = 0.0;
  std::vector<double> metrics;  // accumulators
  std::vector<float> outputs;   // kPredict
};

struct TrainerCheckpoint {};

// The trainer used the package disttrain in a wrong way, and would do so again.
struct TrainerFailed {
  std::string message;
};

using TrainerMessage = std::variant<TrainerHello, TrainerModel, TrainerValues, TrainerReady, TrainerFinished,
                                    TrainerCheckpoint, TrainerFailed>;

// Checks a message. The error (kConfig) says what was wrong, as in "sent ...", to follow the trainer's name.
Result<TrainerMessage> parse_trainer_message(const RawMessage& raw);

// The messages of the worker.
nlohmann::json welcome_message(const std::vector<ColumnSpec>& columns, std::uint64_t batch_size, std::uint64_t seed);
nlohmann::json open_message(const Layout& layout);
nlohmann::json values_message(const Arena::Place& into);
// Where the columns' values are; row_ends only if the column has them.
struct SharedColumn {
  Arena::Place values;
  std::uint64_t bytes = 0;
  Arena::Place row_ends;
  std::uint64_t row_end_bytes = 0;
};
struct TrainerStart {
  std::uint64_t number = 0;  // counts the computations of this trainer
  Program program = Program::kStep;
  StepSeed seed;
  std::uint32_t workers = 0;  // the number of workers in the job now
  std::uint64_t examples = 0;
  Arena::Place parameters;
  Arena::Place gradients;
  std::optional<Arena::Place> spare_gradients;
  std::vector<SharedColumn> columns;
  // The numbers of the records that the next step will probably have, if the trainer reads its own data set.
  std::optional<SharedColumn> next;
};
nlohmann::json start_message(const TrainerStart& start);
nlohmann::json end_message();

}  // namespace disttrain::workerd
