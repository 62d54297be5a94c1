// Computes a model's outputs for a data set, from a checkpoint: `disttrain predict` starts workerd in this role. It
// needs no cluster.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workerd/prepared_job.h"

namespace disttrain::workerd {

struct PredictOptions {
  std::string checkpoint;         // folder of a checkpoint, or of a job, which stands for its newest checkpoint
  std::string out;                // the file to write: NAME.npy, NAME.csv or NAME.parquet
  std::vector<std::string> sets;  // overrides of the job that the checkpoint belongs to: "section.key=value"
  std::uint32_t threads = 1;      // number of compute threads, at least 1
};

// Computes the outputs for the records of the job's [evaluate], in their order, and writes one row for each record. If
// the job evaluates moving averages of the parameters, uses these averages too. Prints a line about what it wrote to
// stdout, and the lines of a trainer to stderr. The file appears when it is complete; a file of this name is replaced.
//
// Errors: those of reading the checkpoint, the job, the data and the model; kConfig if the model doesn't predict, or if
// it has other variables than the checkpoint; kTemporary if SIGINT or SIGTERM has ended the work.
Status predict(const PredictOptions& options, const EngineFactory& make_engine);

}  // namespace disttrain::workerd
