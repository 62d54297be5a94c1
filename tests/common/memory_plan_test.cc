#include "common/memory_plan.h"

#include <gtest/gtest.h>

namespace disttrain {
namespace {

JobConfig job_of(const std::string& builtin) {
  JobConfig job;
  job.model.builtin = builtin;
  job.train.batch_size = 8;
  return job;
}

TEST(EvaluationBatchRecords, ModelsWhoseRecordsMayBeLargeTakeTheBatchOfTraining) {
  EXPECT_EQ(evaluation_batch_records(job_of("")), 8U) << "a program or a trainer";
  EXPECT_EQ(evaluation_batch_records(job_of("resnet")), 8U);
  EXPECT_EQ(evaluation_batch_records(job_of("transformer")), 8U);
}

TEST(EvaluationBatchRecords, SmallBuiltinModelsTakeALargerBatch) {
  for (const char* builtin : {"linear", "mlp", "cnn", "wide_deep", "matrix_factorization"})
    EXPECT_EQ(evaluation_batch_records(job_of(builtin)), 1000U) << builtin;
}

TEST(EvaluationBatchRecords, KeyWinsForEveryModel) {
  for (const char* builtin : {"", "mlp", "resnet"}) {
    JobConfig job = job_of(builtin);
    job.evaluate.batch_size = 30;
    EXPECT_EQ(evaluation_batch_records(job), 30U) << builtin;
  }
}

}  // namespace
}  // namespace disttrain
