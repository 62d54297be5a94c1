// Compares this machine's kernels with simple reference implementations in double precision, for random shapes. Arrays
// are exactly as large as the contract requires, so that the address sanitizer finds any access behind their end.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "engine/kernels.h"
#include "engine/sparse_rows.h"

namespace disttrain::workerd {
namespace {

std::vector<const Kernels*> kernels_here() {
  std::vector<const Kernels*> sets;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) sets.push_back(&avx2_kernels());
  if (__builtin_cpu_supports("avx512f")) sets.push_back(&avx512_kernels());
  return sets;
}

using Floats = std::vector<float>;

// Reports the sets of kernels that this machine can't run. The tests below leave these sets out.
TEST(Kernels, OfEachWidthAreTested) {
  std::string missing;
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) missing += " AVX2 with FMA";
  if (!__builtin_cpu_supports("avx512f")) missing += " AVX-512F";
  if (!missing.empty()) GTEST_SKIP() << "this machine doesn't have" << missing;
  EXPECT_EQ(kernels_here().size(), 2u);
}

class KernelsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (kernels_here().empty()) GTEST_SKIP() << "this machine has neither AVX2 with FMA nor AVX-512F";
  }

  std::int64_t number(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }

  // Each value is zero with the probability `zeros`.
  Floats floats(std::int64_t size, double zeros = 0.0) {
    std::uniform_real_distribution<float> values(-1.0F, 1.0F);
    std::bernoulli_distribution zero(zeros);
    Floats result(static_cast<std::size_t>(size));
    for (float& value : result) value = zero(random_) ? 0.0F : values(random_);
    return result;
  }

  // Runs `body` with every set of kernels on random shapes.
  template <typename Body>
  void for_shapes(std::int64_t most_rows, std::int64_t most_inputs, std::int64_t most_outputs, const Body& body) {
    for (const Kernels* kernels : kernels_here())
      for (int i = 0; i < 60; ++i) {
        const DenseShape shape{number(1, most_rows), number(1, most_inputs), number(1, most_outputs)};
        SCOPED_TRACE(std::string(kernels->name) + " " + std::to_string(shape.rows) + " x " +
                     std::to_string(shape.inputs) + " x " + std::to_string(shape.outputs));
        body(*kernels, shape);
        if (HasFatalFailure()) return;
      }
  }

  // Calls `body` with two parts that together cover [0, size).
  template <typename Body>
  void in_two_parts(std::int64_t size, const Body& body) {
    const std::int64_t middle = number(0, size);
    body(Range{0, middle});
    body(Range{middle, size});
  }

  std::mt19937 random_{20};
};

void expect_near(const Floats& found, const std::vector<double>& expected) {
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], 1e-4) << "element " << i << " of " << found.size();
}

std::vector<double> forward(const DenseShape& s, const Floats& x, const Floats& w, const Floats& b) {
  std::vector<double> y;
  for (std::int64_t r = 0; r < s.rows; ++r)
    for (std::int64_t o = 0; o < s.outputs; ++o) {
      double sum = b[static_cast<std::size_t>(o)];
      for (std::int64_t i = 0; i < s.inputs; ++i)
        sum += static_cast<double>(x[static_cast<std::size_t>(r * s.inputs + i)]) *
               static_cast<double>(w[static_cast<std::size_t>(i * s.outputs + o)]);
      y.push_back(sum);
    }
  return y;
}

std::vector<double> weight_gradient(const DenseShape& s, const Floats& x, const Floats& d_y) {
  std::vector<double> d_w(static_cast<std::size_t>(s.inputs * s.outputs));
  for (std::int64_t r = 0; r < s.rows; ++r)
    for (std::int64_t i = 0; i < s.inputs; ++i)
      for (std::int64_t o = 0; o < s.outputs; ++o)
        d_w[static_cast<std::size_t>(i * s.outputs + o)] +=
            static_cast<double>(x[static_cast<std::size_t>(r * s.inputs + i)]) *
            static_cast<double>(d_y[static_cast<std::size_t>(r * s.outputs + o)]);
  return d_w;
}

std::vector<double> input_gradient(const DenseShape& s, const Floats& d_y, const Floats& w) {
  std::vector<double> d_x(static_cast<std::size_t>(s.rows * s.inputs));
  for (std::int64_t r = 0; r < s.rows; ++r)
    for (std::int64_t i = 0; i < s.inputs; ++i)
      for (std::int64_t o = 0; o < s.outputs; ++o)
        d_x[static_cast<std::size_t>(r * s.inputs + i)] +=
            static_cast<double>(d_y[static_cast<std::size_t>(r * s.outputs + o)]) *
            static_cast<double>(w[static_cast<std::size_t>(i * s.outputs + o)]);
  return d_x;
}

TEST_F(KernelsTest, ForwardOfFewRowsEqualsTheNaiveTwin) {
  for_shapes(17, 70, 1200, [this](const Kernels& kernels, const DenseShape& s) {
    const Floats x = floats(s.rows * s.inputs), w = floats(s.inputs * s.outputs), b = floats(s.outputs);
    Floats y(static_cast<std::size_t>(s.rows * s.outputs), NAN);
    const Range inputs{0, s.inputs};
    in_two_parts(s.outputs, [&](Range part) {
      kernels.forward_few_rows(s, x.data(), w.data(), b.data(), y.data(), part, inputs);
    });
    expect_near(y, forward(s, x, w, b));
    Floats again(y.size(), NAN);
    in_two_parts(s.inputs, [&](Range part) {
      kernels.forward_few_rows(s, x.data(), w.data(), b.data(), again.data(), {0, s.outputs}, part);
    });
    EXPECT_EQ(again, y) << "the same bits in two calls";
  });
}

TEST_F(KernelsTest, NarrowForwardEqualsTheNaiveTwin) {
  for_shapes(40, 200, 70, [this](const Kernels& kernels, const DenseShape& s) {
    const Floats x = floats(s.rows * s.inputs), w = floats(s.inputs * s.outputs), b = floats(s.outputs);
    Floats y(static_cast<std::size_t>(s.rows * s.outputs), NAN);
    in_two_parts(s.rows, [&](Range part) { kernels.forward_narrow(s, x.data(), w.data(), b.data(), y.data(), part); });
    expect_near(y, forward(s, x, w, b));
  });
}

TEST_F(KernelsTest, WeightGradientEqualsTheNaiveTwin) {
  for_shapes(kMaxKernelRows, 40, 300, [this](const Kernels& kernels, const DenseShape& s) {
    const Floats x = floats(s.rows * s.inputs), d_y = floats(s.rows * s.outputs);
    Floats d_w(static_cast<std::size_t>(s.inputs * s.outputs), NAN);
    in_two_parts(s.inputs,
                 [&](Range part) { kernels.weight_gradient_few_rows(s, x.data(), d_y.data(), d_w.data(), part); });
    expect_near(d_w, weight_gradient(s, x, d_y));
  });
}

TEST_F(KernelsTest, BiasGradientAddsTheRowsInTheirOrder) {
  for_shapes(kMaxKernelRows, 1, 300, [this](const Kernels& kernels, const DenseShape& s) {
    const Floats d_y = floats(s.rows * s.outputs);
    Floats d_b(static_cast<std::size_t>(s.outputs), NAN);
    kernels.bias_gradient(s, d_y.data(), d_b.data());
    Floats expected(d_b.size(), 0.0F);
    for (std::size_t i = 0; i < d_y.size(); ++i) expected[i % expected.size()] += d_y[i];
    EXPECT_EQ(d_b, expected);
  });
}

TEST_F(KernelsTest, InputGradientEqualsTheNaiveTwin) {
  for_shapes(kMaxKernelRows, 30, 700, [this](const Kernels& kernels, const DenseShape& s) {
    const Floats d_y = floats(s.rows * s.outputs), w = floats(s.inputs * s.outputs);
    Floats d_x(static_cast<std::size_t>(s.rows * s.inputs), NAN);
    in_two_parts(s.inputs,
                 [&](Range part) { kernels.input_gradient_few_rows(s, d_y.data(), w.data(), d_x.data(), part); });
    expect_near(d_x, input_gradient(s, d_y, w));
  });
}

TEST_F(KernelsTest, SparseProductsEqualTheNaiveTwins) {
  for_shapes(40, 300, 150, [this](const Kernels& kernels, const DenseShape& s) {
    const Floats x = floats(s.rows * s.inputs, 0.8), w = floats(s.inputs * s.outputs), b = floats(s.outputs);
    const Floats d_y = floats(s.rows * s.outputs);
    const std::int64_t most = s.rows * s.inputs;
    const std::int64_t groups = (s.inputs + kSparseGroup - 1) / kSparseGroup;
    std::vector<std::uint32_t> positions(static_cast<std::size_t>(most + kCollectSlack));
    Floats values(static_cast<std::size_t>(most + kCollectSlack));
    std::vector<std::uint32_t> begins(static_cast<std::size_t>(groups * s.rows + 1));
    kernels.sparse_collect(s.rows, s.inputs, x.data(), most, positions.data(), values.data(), begins.data());
    const SparseView sparse{s.rows, s.inputs, positions.data(), values.data(), begins.data(), x.data()};
    Floats y(static_cast<std::size_t>(s.rows * s.outputs), NAN);
    in_two_parts(s.rows,
                 [&](Range part) { kernels.sparse_forward(sparse, s.outputs, w.data(), b.data(), y.data(), part); });
    expect_near(y, forward(s, x, w, b));
    Floats d_w(static_cast<std::size_t>(s.inputs * s.outputs), NAN);
    in_two_parts(groups,
                 [&](Range part) { kernels.sparse_weight_gradient(sparse, s.outputs, d_y.data(), d_w.data(), part); });
    expect_near(d_w, weight_gradient(s, x, d_y));
  });
}

TEST_F(KernelsTest, CollectingStopsWithinItsRoom) {
  for_shapes(40, 300, 1, [this](const Kernels& kernels, const DenseShape& s) {
    const Floats x = floats(s.rows * s.inputs, 0.3);
    const std::int64_t most = number(0, s.rows * s.inputs / 2);
    const std::int64_t groups = (s.inputs + kSparseGroup - 1) / kSparseGroup;
    std::vector<std::uint32_t> positions(static_cast<std::size_t>(most + kCollectSlack));
    Floats values(static_cast<std::size_t>(most + kCollectSlack));
    std::vector<std::uint32_t> begins(static_cast<std::size_t>(groups * s.rows + 1));
    const std::int64_t found =
        kernels.sparse_collect(s.rows, s.inputs, x.data(), most, positions.data(), values.data(), begins.data());
    std::int64_t nonzeros = 0;
    for (float value : x) nonzeros += value != 0.0F ? 1 : 0;
    EXPECT_EQ(found > most, nonzeros > most);
  });
}

TEST_F(KernelsTest, DenseInputsAreNotTakenForSparse) {
  SparseRows rows;
  const DenseShape shape{20, 50, 10};
  EXPECT_EQ(rows.find(floats(1000), shape), nullptr);
  EXPECT_NE(rows.find(floats(1000, 0.8), shape), nullptr);
  EXPECT_EQ(rows.find(floats(500, 0.8), {10, 50, 10}), nullptr) << "few rows have kernels of their own";
  Floats first_row_empty = floats(1000);
  for (std::size_t i = 0; i < 50; ++i) first_row_empty[i] = first_row_empty[16 * 50 + i] = 0.0F;
  EXPECT_EQ(rows.find(first_row_empty, shape), nullptr) << "what the sample hides, the count finds";
}

}  // namespace
}  // namespace disttrain::workerd
