#include "common/update/rules.h"

#include <cmath>
#include <cstddef>
#include <limits>

#include "common/check.h"
#include "common/update/magnitude.h"

namespace disttrain::update {
namespace {

// The gradient's preparation. Most jobs have neither a limit nor a decay, and then a third of the loop's instructions
// would be for these alone. The loops are compiled for both.
template <typename T>
struct AllTerms {
  GradientTerms<T> terms;
  DISTTRAIN_INLINE_BODY T operator()(T gradient, T parameter) const {
    T g = terms.scale * gradient;
    g = g < -terms.limit ? -terms.limit : g;  // a NaN stays a NaN, because both conditions are false
    g = g > terms.limit ? terms.limit : g;
    return g + terms.decay * parameter;
  }
};
template <typename T>
struct ScaleAlone {
  T scale;
  DISTTRAIN_INLINE_BODY T operator()(T gradient, T) const { return scale * gradient; }
};

template <typename T, typename Run>
void with_preparation(GradientTerms<T> terms, const Run& run_loop) {
  if (terms.decay == T{0} && terms.limit == std::numeric_limits<T>::infinity())
    run_loop(ScaleAlone<T>{terms.scale});
  else
    run_loop(AllTerms<T>{terms});
}

// Loops of rules with 0, 1 and 2 slots. An `Element` computes one element by the rule's formula: element(p, g,
// slots...). It returns the sum of the magnitudes of what it has written (magnitude.h). If a slot can't be large or a
// NaN unless p or another slot is, it is left out. The pragma lets the compiler add in any order, and so make vectors.
template <typename T, typename Prepare, typename Element>
struct Loop0 {
  Prepare prepare;
  Element element;
  DISTTRAIN_INLINE_BODY void operator()(T* __restrict p, const T* __restrict gradient, std::size_t n,
                                        T* __restrict out) const {
    // In a core's cache, this loop is so fast that the additions to one sum would wait for each other. So there are
    // two. In memory, four streams would be slower than two.
    constexpr std::size_t kInCache = 1 << 15;
    const std::size_t half = n <= kInCache ? n / 2 : 0;
    T sum = 0;
    T more = 0;
#pragma omp simd reduction(+ : sum, more)
    for (std::size_t i = 0; i < half; ++i) {
      sum += element(p[i], prepare(gradient[i], p[i]));
      more += element(p[half + i], prepare(gradient[half + i], p[half + i]));
    }
#pragma omp simd reduction(+ : sum)
    for (std::size_t i = 2 * half; i < n; ++i) sum += element(p[i], prepare(gradient[i], p[i]));
    sum += more;
    *out = sum;
  }
};

template <typename T, typename Prepare, typename Element>
struct Loop1 {
  Prepare prepare;
  Element element;
  DISTTRAIN_INLINE_BODY void operator()(T* __restrict p, const T* __restrict gradient, T* __restrict slot,
                                        std::size_t n, T* __restrict out) const {
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::size_t i = 0; i < n; ++i) sum += element(p[i], prepare(gradient[i], p[i]), slot[i]);
    *out = sum;
  }
};

template <typename T, typename Prepare, typename Element>
struct Loop2 {
  Prepare prepare;
  Element element;
  DISTTRAIN_INLINE_BODY void operator()(T* __restrict p, const T* __restrict gradient, T* __restrict slot0,
                                        T* __restrict slot1, std::size_t n, T* __restrict out) const {
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::size_t i = 0; i < n; ++i) sum += element(p[i], prepare(gradient[i], p[i]), slot0[i], slot1[i]);
    *out = sum;
  }
};

template <typename T, typename Element>
bool run_rule(VectorWidth width, GradientTerms<T> terms, Element element, std::span<T> p, std::span<const T> gradient) {
  DISTTRAIN_CHECK_EQ(gradient.size(), p.size());
  T sum = 0;
  with_preparation(terms, [&]<typename Prepare>(Prepare prepare) {
    run(width, Loop0<T, Prepare, Element>{prepare, element}, p.data(), gradient.data(), p.size(), &sum);
  });
  return is_small(sum);
}

template <typename T, typename Element>
bool run_rule(VectorWidth width, GradientTerms<T> terms, Element element, std::span<T> p, std::span<const T> gradient,
              std::span<T> slot) {
  DISTTRAIN_CHECK_EQ(gradient.size(), p.size());
  DISTTRAIN_CHECK_EQ(slot.size(), p.size());
  T sum = 0;
  with_preparation(terms, [&]<typename Prepare>(Prepare prepare) {
    run(width, Loop1<T, Prepare, Element>{prepare, element}, p.data(), gradient.data(), slot.data(), p.size(), &sum);
  });
  return is_small(sum);
}

template <typename T, typename Element>
bool run_rule(VectorWidth width, GradientTerms<T> terms, Element element, std::span<T> p, std::span<const T> gradient,
              std::span<T> slot0, std::span<T> slot1) {
  DISTTRAIN_CHECK_EQ(gradient.size(), p.size());
  DISTTRAIN_CHECK_EQ(slot0.size(), p.size());
  DISTTRAIN_CHECK_EQ(slot1.size(), p.size());
  T sum = 0;
  with_preparation(terms, [&]<typename Prepare>(Prepare prepare) {
    run(width, Loop2<T, Prepare, Element>{prepare, element}, p.data(), gradient.data(), slot0.data(), slot1.data(),
        p.size(), &sum);
  });
  return is_small(sum);
}

template <typename T>
struct SgdElement {
  T rate;
  DISTTRAIN_INLINE_BODY T operator()(T& p, T g) const {
    p -= rate * g;
    return std::abs(p);
  }
};

template <typename T>
struct MomentumElement {
  T rate;
  T momentum;
  DISTTRAIN_INLINE_BODY T operator()(T& p, T g, T& velocity) const {
    velocity = momentum * velocity + g;
    p -= rate * velocity;
    return std::abs(p) + std::abs(velocity);
  }
};

template <typename T>
struct NesterovElement {
  T rate;
  T momentum;
  DISTTRAIN_INLINE_BODY T operator()(T& p, T g, T& velocity) const {
    velocity = momentum * velocity + g;
    p -= rate * (g + momentum * velocity);
    return std::abs(p) + std::abs(velocity);
  }
};

template <typename T>
struct AdagradElement {
  T rate;
  T epsilon;
  DISTTRAIN_INLINE_BODY T operator()(T& p, T g, T& squares) const {
    squares += g * g;
    p -= rate * g / (std::sqrt(squares) + epsilon);
    return std::abs(p) + squares;
  }
};

template <typename T>
struct RmspropElement {
  RmspropNumbers<T> n;
  DISTTRAIN_INLINE_BODY T operator()(T& p, T g, T& squares) const {
    squares = n.rho * squares + n.one_minus_rho * (g * g);
    p -= n.rate * g / (std::sqrt(squares) + n.epsilon);
    return std::abs(p) + squares;
  }
};

template <typename T>
struct RmspropWithMomentumElement {
  RmspropNumbers<T> n;
  DISTTRAIN_INLINE_BODY T operator()(T& p, T g, T& squares, T& velocity) const {
    squares = n.rho * squares + n.one_minus_rho * (g * g);
    velocity = n.momentum * velocity + g / (std::sqrt(squares) + n.epsilon);
    p -= n.rate * velocity;
    return std::abs(p) + std::abs(velocity) + squares;
  }
};

template <typename T>
struct AdamElement {
  AdamNumbers<T> n;
  DISTTRAIN_INLINE_BODY T operator()(T& p, T g, T& first, T& second) const {
    first = n.beta1 * first + n.one_minus_beta1 * g;
    second = n.beta2 * second + n.one_minus_beta2 * (g * g);
    p = n.keep * p - n.rate * first / (std::sqrt(second) * n.root_scale + n.epsilon);
    return std::abs(p) + second;
  }
};

template <typename T, typename Prepare>
struct LambMoments {
  Prepare prepare;
  LambNumbers<T> n;
  DISTTRAIN_INLINE_BODY void operator()(const T* __restrict gradient, T* __restrict first, T* __restrict second,
                                        std::size_t count, T* __restrict out) const {
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::size_t i = 0; i < count; ++i) {
      const T g = prepare(gradient[i], T{0});
      first[i] = n.beta1 * first[i] + n.one_minus_beta1 * g;
      second[i] = n.beta2 * second[i] + n.one_minus_beta2 * (g * g);
      sum += second[i];
    }
    *out = sum;
  }
};

template <typename T>
struct LambDirection {
  LambNumbers<T> n;
  DISTTRAIN_INLINE_BODY void operator()(T* __restrict direction, const T* __restrict p, const T* __restrict first,
                                        const T* __restrict second, std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i)
      direction[i] = n.first_scale * first[i] / (std::sqrt(second[i]) * n.root_scale + n.epsilon) + n.decay * p[i];
  }
};

template <typename T>
struct FtrlElement {
  FtrlNumbers<T> n;
  DISTTRAIN_INLINE_BODY T operator()(T& p, T g, T& squares, T& linear) const {
    const T before = std::sqrt(kFtrlInitialSquares<T> + squares);
    squares += g * g;
    const T root = std::sqrt(kFtrlInitialSquares<T> + squares);
    linear += g - (root - before) * n.one_over_rate * p;
    // Not "linear < 0 ? linear + l1 : linear - l1": with this choice between two sums, the compiler makes no vectors.
    const T shrunk = linear - std::copysign(n.l1, linear);
    const T next = -shrunk / (root * n.one_over_rate + n.twice_l2);
    p = std::abs(linear) <= n.l1 ? T{0} : next;  // a NaN stays a NaN, because the condition is false
    return std::abs(p) + squares;
  }
};

}  // namespace

template <typename T>
bool sgd(GradientTerms<T> terms, T rate, std::span<T> parameters, std::span<const T> gradient, VectorWidth width) {
  return run_rule<T>(width, terms, SgdElement<T>{rate}, parameters, gradient);
}

template <typename T>
bool momentum(GradientTerms<T> terms, T rate, T momentum, std::span<T> parameters, std::span<const T> gradient,
              std::span<T> velocity, VectorWidth width) {
  return run_rule<T>(width, terms, MomentumElement<T>{rate, momentum}, parameters, gradient, velocity);
}

template <typename T>
bool nesterov(GradientTerms<T> terms, T rate, T momentum, std::span<T> parameters, std::span<const T> gradient,
              std::span<T> velocity, VectorWidth width) {
  return run_rule<T>(width, terms, NesterovElement<T>{rate, momentum}, parameters, gradient, velocity);
}

template <typename T>
bool adagrad(GradientTerms<T> terms, T rate, T epsilon, std::span<T> parameters, std::span<const T> gradient,
             std::span<T> squares, VectorWidth width) {
  return run_rule<T>(width, terms, AdagradElement<T>{rate, epsilon}, parameters, gradient, squares);
}

template <typename T>
bool rmsprop(GradientTerms<T> terms, RmspropNumbers<T> numbers, std::span<T> parameters, std::span<const T> gradient,
             std::span<T> squares, VectorWidth width) {
  return run_rule<T>(width, terms, RmspropElement<T>{numbers}, parameters, gradient, squares);
}

template <typename T>
bool rmsprop_with_momentum(GradientTerms<T> terms, RmspropNumbers<T> numbers, std::span<T> parameters,
                           std::span<const T> gradient, std::span<T> squares, std::span<T> velocity,
                           VectorWidth width) {
  return run_rule<T>(width, terms, RmspropWithMomentumElement<T>{numbers}, parameters, gradient, squares, velocity);
}

template <typename T>
bool adam(GradientTerms<T> terms, AdamNumbers<T> numbers, std::span<T> parameters, std::span<const T> gradient,
          std::span<T> first_moment, std::span<T> second_moment, VectorWidth width) {
  return run_rule<T>(width, terms, AdamElement<T>{numbers}, parameters, gradient, first_moment, second_moment);
}

template <typename T>
bool lamb_moments(GradientTerms<T> terms, LambNumbers<T> numbers, std::span<const T> gradient,
                  std::span<T> first_moment, std::span<T> second_moment, VectorWidth width) {
  DISTTRAIN_CHECK_EQ(first_moment.size(), gradient.size());
  DISTTRAIN_CHECK_EQ(second_moment.size(), gradient.size());
  T sum = 0;
  with_preparation(terms, [&]<typename Prepare>(Prepare prepare) {
    run(width, LambMoments<T, Prepare>{prepare, numbers}, gradient.data(), first_moment.data(), second_moment.data(),
        gradient.size(), &sum);
  });
  return is_small(sum);
}

template <typename T>
void lamb_direction(LambNumbers<T> numbers, std::span<T> direction, std::span<const T> parameters,
                    std::span<const T> first_moment, std::span<const T> second_moment, VectorWidth width) {
  DISTTRAIN_CHECK_EQ(direction.size(), parameters.size());
  DISTTRAIN_CHECK_EQ(first_moment.size(), parameters.size());
  DISTTRAIN_CHECK_EQ(second_moment.size(), parameters.size());
  run(width, LambDirection<T>{numbers}, direction.data(), parameters.data(), first_moment.data(), second_moment.data(),
      parameters.size());
}

template <typename T>
bool ftrl(GradientTerms<T> terms, FtrlNumbers<T> numbers, std::span<T> parameters, std::span<const T> gradient,
          std::span<T> squares, std::span<T> linear, VectorWidth width) {
  return run_rule<T>(width, terms, FtrlElement<T>{numbers}, parameters, gradient, squares, linear);
}

// The two types that parameters may have.
#define DISTTRAIN_INSTANTIATE(T)                                                                                     \
  template bool sgd(GradientTerms<T>, T, std::span<T>, std::span<const T>, VectorWidth);                             \
  template bool momentum(GradientTerms<T>, T, T, std::span<T>, std::span<const T>, std::span<T>, VectorWidth);       \
  template bool nesterov(GradientTerms<T>, T, T, std::span<T>, std::span<const T>, std::span<T>, VectorWidth);       \
  template bool adagrad(GradientTerms<T>, T, T, std::span<T>, std::span<const T>, std::span<T>, VectorWidth);        \
  template bool rmsprop(GradientTerms<T>, RmspropNumbers<T>, std::span<T>, std::span<const T>, std::span<T>,         \
                        VectorWidth);                                                                                \
  template bool rmsprop_with_momentum(GradientTerms<T>, RmspropNumbers<T>, std::span<T>, std::span<const T>,         \
                                      std::span<T>, std::span<T>, VectorWidth);                                      \
  template bool adam(GradientTerms<T>, AdamNumbers<T>, std::span<T>, std::span<const T>, std::span<T>, std::span<T>, \
                     VectorWidth);                                                                                   \
  template bool lamb_moments(GradientTerms<T>, LambNumbers<T>, std::span<const T>, std::span<T>, std::span<T>,       \
                             VectorWidth);                                                                           \
  template void lamb_direction(LambNumbers<T>, std::span<T>, std::span<const T>, std::span<const T>,                 \
                               std::span<const T>, VectorWidth);                                                     \
  template bool ftrl(GradientTerms<T>, FtrlNumbers<T>, std::span<T>, std::span<const T>, std::span<T>, std::span<T>, \
                     VectorWidth);
DISTTRAIN_INSTANTIATE(float)
DISTTRAIN_INSTANTIATE(double)
#undef DISTTRAIN_INSTANTIATE

}  // namespace disttrain::update
