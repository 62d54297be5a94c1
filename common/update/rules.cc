#include "common/update/rules.h"

#include <cmath>
#include <cstddef>

#include "common/check.h"

namespace disttrain::update {
namespace {

DISTTRAIN_INLINE_BODY float prepared(GradientTerms terms, float gradient, float parameter) {
  float g = terms.scale * gradient;
  g = g < -terms.limit ? -terms.limit : g;  // a NaN stays a NaN, because both conditions are false
  g = g > terms.limit ? terms.limit : g;
  return g + terms.decay * parameter;
}

// Loops of rules with 0, 1 and 2 slots. An `Element` computes one element by the rule's formula: element(p, g,
// slots...).
template <typename Element>
struct Loop0 {
  GradientTerms terms;
  Element element;
  DISTTRAIN_INLINE_BODY void operator()(float* __restrict p, const float* __restrict gradient, std::size_t n) const {
    for (std::size_t i = 0; i < n; ++i) element(p[i], prepared(terms, gradient[i], p[i]));
  }
};

template <typename Element>
struct Loop1 {
  GradientTerms terms;
  Element element;
  DISTTRAIN_INLINE_BODY void operator()(float* __restrict p, const float* __restrict gradient, float* __restrict slot,
                                        std::size_t n) const {
    for (std::size_t i = 0; i < n; ++i) element(p[i], prepared(terms, gradient[i], p[i]), slot[i]);
  }
};

template <typename Element>
struct Loop2 {
  GradientTerms terms;
  Element element;
  DISTTRAIN_INLINE_BODY void operator()(float* __restrict p, const float* __restrict gradient, float* __restrict slot0,
                                        float* __restrict slot1, std::size_t n) const {
    for (std::size_t i = 0; i < n; ++i) element(p[i], prepared(terms, gradient[i], p[i]), slot0[i], slot1[i]);
  }
};

template <typename Element>
void run_rule(VectorWidth width, GradientTerms terms, Element element, std::span<float> p,
              std::span<const float> gradient) {
  DISTTRAIN_CHECK_EQ(gradient.size(), p.size());
  run(width, Loop0<Element>{terms, element}, p.data(), gradient.data(), p.size());
}

template <typename Element>
void run_rule(VectorWidth width, GradientTerms terms, Element element, std::span<float> p,
              std::span<const float> gradient, std::span<float> slot) {
  DISTTRAIN_CHECK_EQ(gradient.size(), p.size());
  DISTTRAIN_CHECK_EQ(slot.size(), p.size());
  run(width, Loop1<Element>{terms, element}, p.data(), gradient.data(), slot.data(), p.size());
}

template <typename Element>
void run_rule(VectorWidth width, GradientTerms terms, Element element, std::span<float> p,
              std::span<const float> gradient, std::span<float> slot0, std::span<float> slot1) {
  DISTTRAIN_CHECK_EQ(gradient.size(), p.size());
  DISTTRAIN_CHECK_EQ(slot0.size(), p.size());
  DISTTRAIN_CHECK_EQ(slot1.size(), p.size());
  run(width, Loop2<Element>{terms, element}, p.data(), gradient.data(), slot0.data(), slot1.data(), p.size());
}

struct SgdElement {
  float rate;
  DISTTRAIN_INLINE_BODY void operator()(float& p, float g) const { p -= rate * g; }
};

struct MomentumElement {
  float rate;
  float momentum;
  DISTTRAIN_INLINE_BODY void operator()(float& p, float g, float& velocity) const {
    velocity = momentum * velocity + g;
    p -= rate * velocity;
  }
};

struct NesterovElement {
  float rate;
  float momentum;
  DISTTRAIN_INLINE_BODY void operator()(float& p, float g, float& velocity) const {
    velocity = momentum * velocity + g;
    p -= rate * (g + momentum * velocity);
  }
};

struct AdagradElement {
  float rate;
  float epsilon;
  DISTTRAIN_INLINE_BODY void operator()(float& p, float g, float& squares) const {
    squares += g * g;
    p -= rate * g / (std::sqrt(squares) + epsilon);
  }
};

struct RmspropElement {
  RmspropNumbers n;
  DISTTRAIN_INLINE_BODY void operator()(float& p, float g, float& squares) const {
    squares = n.rho * squares + n.one_minus_rho * (g * g);
    p -= n.rate * g / (std::sqrt(squares) + n.epsilon);
  }
};

struct RmspropWithMomentumElement {
  RmspropNumbers n;
  DISTTRAIN_INLINE_BODY void operator()(float& p, float g, float& squares, float& velocity) const {
    squares = n.rho * squares + n.one_minus_rho * (g * g);
    velocity = n.momentum * velocity + g / (std::sqrt(squares) + n.epsilon);
    p -= n.rate * velocity;
  }
};

struct AdamElement {
  AdamNumbers n;
  DISTTRAIN_INLINE_BODY void operator()(float& p, float g, float& first, float& second) const {
    first = n.beta1 * first + n.one_minus_beta1 * g;
    second = n.beta2 * second + n.one_minus_beta2 * (g * g);
    p = n.keep * p - n.rate * first / (std::sqrt(second) * n.root_scale + n.epsilon);
  }
};

}  // namespace

void sgd(GradientTerms terms, float rate, std::span<float> parameters, std::span<const float> gradient,
         VectorWidth width) {
  run_rule(width, terms, SgdElement{rate}, parameters, gradient);
}

void momentum(GradientTerms terms, float rate, float momentum, std::span<float> parameters,
              std::span<const float> gradient, std::span<float> velocity, VectorWidth width) {
  run_rule(width, terms, MomentumElement{rate, momentum}, parameters, gradient, velocity);
}

void nesterov(GradientTerms terms, float rate, float momentum, std::span<float> parameters,
              std::span<const float> gradient, std::span<float> velocity, VectorWidth width) {
  run_rule(width, terms, NesterovElement{rate, momentum}, parameters, gradient, velocity);
}

void adagrad(GradientTerms terms, float rate, float epsilon, std::span<float> parameters,
             std::span<const float> gradient, std::span<float> squares, VectorWidth width) {
  run_rule(width, terms, AdagradElement{rate, epsilon}, parameters, gradient, squares);
}

void rmsprop(GradientTerms terms, RmspropNumbers numbers, std::span<float> parameters, std::span<const float> gradient,
             std::span<float> squares, VectorWidth width) {
  run_rule(width, terms, RmspropElement{numbers}, parameters, gradient, squares);
}

void rmsprop_with_momentum(GradientTerms terms, RmspropNumbers numbers, std::span<float> parameters,
                           std::span<const float> gradient, std::span<float> squares, std::span<float> velocity,
                           VectorWidth width) {
  run_rule(width, terms, RmspropWithMomentumElement{numbers}, parameters, gradient, squares, velocity);
}

void adam(GradientTerms terms, AdamNumbers numbers, std::span<float> parameters, std::span<const float> gradient,
          std::span<float> first_moment, std::span<float> second_moment, VectorWidth width) {
  run_rule(width, terms, AdamElement{numbers}, parameters, gradient, first_moment, second_moment);
}

}  // namespace disttrain::update
