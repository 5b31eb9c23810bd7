#include "tests/harness/example_program.h"

#include "compiler/driver/EmbeddedTemplates.h"
#include "tools/reference/elements.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>

namespace nsa {
std::span<const EmbeddedTemplate> examplePrograms(); // the build makes it (EmbedTemplates.cmake)
} // namespace nsa

namespace nsa::test {

namespace {

using Values = std::vector<double>;

double rounded(DType dtype, double value) {
  std::array<std::byte, sizeof(double)> bytes;
  reference::storeElement(dtype, bytes.data(), 0, value);
  return reference::loadElement(dtype, bytes.data(), 0);
}

class Drawing {
public:
  Drawing(const ExampleCase &of, std::mt19937_64 &random) : random(random) { result.of = of; }

  int64_t size(const std::string &of) const { return result.of.size(of); }
  // Draws an input whose elements are normally distributed; `edit` may change them.
  Values input(const std::string &name, std::vector<int64_t> shape, double deviation = 1,
               const std::function<void(Values &)> &edit = {}) {
    std::normal_distribution<double> normal(0, deviation);
    Values values(count(shape));
    for (double &value : values)
      value = rounded(result.of.dtype, normal(random));
    if (edit)
      edit(values);
    add(name, result.of.dtype, std::move(shape), false, values);
    return values;
  }
  void add(const std::string &name, DType dtype, std::vector<int64_t> shape, bool isOutput, Values values,
           int64_t rowElements = 0) {
    ASSERT_EQ(values.size(), count(shape)) << name;
    result.tensors.push_back({name, dtype, std::move(shape), isOutput, std::move(values), rowElements});
  }
  void output(const std::string &name, const std::vector<int64_t> &shape, Values values) {
    add(name, result.of.dtype, shape, true, std::move(values), shape.back());
  }
  void scalar(const std::string &name, double value) { result.scalars.emplace_back(name, value); }
  Example done() { return std::move(result); }

private:
  static size_t count(const std::vector<int64_t> &shape) {
    return static_cast<size_t>(std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>()));
  }

  std::mt19937_64 &random;
  Example result;
};

// Replaces scores by their softmax; without a finite score the weights are 0.
void softmax(std::span<double> scores) {
  const double most = *std::ranges::max_element(scores);
  double sum = 0;
  for (double &score : scores)
    sum += score = std::isinf(most) ? 0 : std::exp(score - most);
  for (double &score : scores)
    score = sum == 0 ? 0 : score / sum;
}

void drawSoftmax(Drawing &drawing) {
  const int64_t rows = drawing.size("rows"), columns = drawing.size("columns");
  Values x = drawing.input("x", {rows, columns}, 3, [&](Values &values) {
    // The first row has no finite element, and the second one has none in its first half.
    std::fill_n(values.begin(), columns + columns / 2, -std::numeric_limits<double>::infinity());
  });
  for (int64_t row = 0; row < rows; ++row)
    softmax(std::span(x).subspan(static_cast<size_t>(row * columns), static_cast<size_t>(columns)));
  drawing.output("y", {rows, columns}, std::move(x));
}

void drawRmsNorm(Drawing &drawing) {
  const int64_t rows = drawing.size("rows"), columns = drawing.size("columns");
  const double epsilon = 1e-5;
  Values sum = drawing.input("x", {rows, columns});
  const Values residual = drawing.input("residual", {rows, columns});
  const Values weight = drawing.input("weight", {1, columns});
  Values y(sum.size());
  for (int64_t row = 0; row < rows; ++row) {
    double squares = 0;
    for (int64_t i = row * columns; i < (row + 1) * columns; ++i) {
      const auto at = static_cast<size_t>(i);
      sum[at] += residual[at];
      squares += sum[at] * sum[at];
    }
    for (int64_t i = 0; i < columns; ++i) {
      const auto at = static_cast<size_t>(row * columns + i);
      y[at] = sum[at] / std::sqrt(squares / static_cast<double>(columns) + epsilon) * weight[static_cast<size_t>(i)];
    }
  }
  drawing.output("y", {rows, columns}, std::move(y));
  drawing.output("new_residual", {rows, columns}, std::move(sum));
  drawing.scalar("epsilon", epsilon);
}

void drawGemm(Drawing &drawing) {
  const int64_t rows = drawing.size("rows"), columns = drawing.size("columns"), depth = drawing.size("depth");
  const Values a = drawing.input("a", {rows, depth});
  const Values b = drawing.input("b", {columns, depth}, 2 / std::sqrt(static_cast<double>(depth)));
  const Values bias = drawing.input("bias", {columns});
  Values out;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      const double product = std::inner_product(a.begin() + row * depth, a.begin() + (row + 1) * depth,
                                                b.begin() + column * depth, bias[static_cast<size_t>(column)]);
      out.push_back(product / (1 + std::exp(-product)));
    }
  drawing.output("out", {rows, columns}, std::move(out));
}

// Causal attention over [batch, time, head, width]. `score(head, distance, s)` is the score of a key `distance` tokens
// before the query, with the product s = scale * q . k.
template <typename Score> void drawAttention(Drawing &drawing, int64_t kvHeads, int64_t group, const Score &score) {
  const int64_t batch = drawing.size("batch"), length = drawing.size("length"), width = drawing.size("width");
  const int64_t heads = kvHeads * group;
  const double scale = 1 / std::sqrt(static_cast<double>(width));
  const Values q = drawing.input("q", {batch, length, heads, width}, 2);
  const Values k = drawing.input("k", {batch, length, kvHeads, width}, 2);
  const Values v = drawing.input("v", {batch, length, kvHeads, width});
  Values out(q.size());
  for (int64_t entry = 0; entry < batch; ++entry)
    for (int64_t time = 0; time < length; ++time)
      for (int64_t head = 0; head < heads; ++head) {
        const auto key = [&](int64_t at) { return ((entry * length + at) * kvHeads + head / group) * width; };
        const int64_t query = ((entry * length + time) * heads + head) * width;
        Values weights;
        for (int64_t at = 0; at <= time; ++at)
          weights.push_back(score(
              head, time - at,
              scale * std::inner_product(q.begin() + query, q.begin() + query + width, k.begin() + key(at), 0.0)));
        softmax(weights);
        for (int64_t at = 0; at <= time; ++at)
          for (int64_t i = 0; i < width; ++i)
            out[static_cast<size_t>(query + i)] +=
                weights[static_cast<size_t>(at)] * v[static_cast<size_t>(key(at) + i)];
      }
  drawing.output("out", {batch, length, heads, width}, std::move(out));
  drawing.scalar("scale", static_cast<float>(scale));
}

void drawAlibi(Drawing &drawing) {
  const int64_t heads = drawing.size("heads");
  Values slopes;
  for (int64_t head = 0; head < heads; ++head)
    slopes.push_back(static_cast<float>(std::exp2(-8.0 * static_cast<double>(head + 1) / static_cast<double>(heads))));
  drawAttention(drawing, heads, 1, [&](int64_t head, int64_t distance, double s) {
    return s - slopes[static_cast<size_t>(head)] * static_cast<double>(distance);
  });
  drawing.add("slopes", DType::kF32, {heads}, false, slopes);
}

void drawSoftCap(Drawing &drawing) {
  const double cap = 5;
  drawAttention(drawing, drawing.size("kv_heads"), drawing.size("group"),
                [&](int64_t, int64_t, double s) { return cap * std::tanh(s / cap); });
  drawing.scalar("cap", cap);
}

struct Kind {
  const char *program;
  void (*draw)(Drawing &drawing);
  std::vector<std::map<std::string, int64_t>> sizes;
};

const std::vector<Kind> &kinds() {
  static const std::vector<Kind> all = {
      {"softmax",
       drawSoftmax,
       {{{"rows", 37}, {"columns", 77}}, {{"rows", 5}, {"columns", 1}}, {{"rows", 19}, {"columns", 2050}}}},
      {"rms_norm", drawRmsNorm, {{{"rows", 37}, {"columns", 77}}, {{"rows", 19}, {"columns", 2064}}}},
      {"gemm",
       drawGemm,
       {{{"rows", 45}, {"columns", 77}, {"depth", 100}}, {{"rows", 130}, {"columns", 136}, {"depth", 72}}}},
      {"alibi",
       drawAlibi,
       {{{"batch", 2}, {"length", 75}, {"heads", 3}, {"width", 64}},
        {{"batch", 1}, {"length", 150}, {"heads", 2}, {"width", 40}}}},
      {"soft_cap",
       drawSoftCap,
       {{{"batch", 2}, {"length", 75}, {"kv_heads", 2}, {"group", 3}, {"width", 64}},
        {{"batch", 1}, {"length", 130}, {"kv_heads", 1}, {"group", 2}, {"width", 80}}}},
  };
  return all;
}

} // namespace

std::string ExampleCase::name() const {
  std::string text = program + "_" + std::string(dtypeName(dtype));
  for (const auto &[key, value] : sizes)
    text.append("_").append(key).append(std::to_string(value));
  return text;
}

std::map<std::string, std::string> ExampleCase::values() const {
  std::map<std::string, std::string> texts = {{"dtype", std::string(dtypeName(dtype))}};
  for (const auto &[key, value] : sizes)
    texts.emplace(key, std::to_string(value));
  return texts;
}

const ExampleTensor &Example::tensor(const std::string &name) const {
  return *std::ranges::find(tensors, name, &ExampleTensor::name);
}

std::string exampleText(const std::string &program) {
  for (const EmbeddedTemplate &file : examplePrograms())
    if (file.path == program + ".tile")
      return std::string(file.text);
  ADD_FAILURE() << "there is no example " << program;
  return "";
}

std::vector<ExampleCase> exampleCases() {
  std::vector<ExampleCase> cases;
  for (const Kind &kind : kinds())
    for (const auto &sizes : kind.sizes)
      for (const DType dtype : {DType::kBf16, DType::kF16, DType::kF32})
        cases.push_back({kind.program, dtype, sizes});
  return cases;
}

std::vector<ExampleCase> briefExampleCases() {
  std::vector<ExampleCase> cases;
  for (const Kind &kind : kinds())
    cases.push_back({kind.program, DType::kBf16, kind.sizes.front()});
  return cases;
}

Example drawExample(const ExampleCase &which, std::mt19937_64 &random) {
  Drawing drawing(which, random);
  std::ranges::find(kinds(), which.program, &Kind::program)->draw(drawing);
  return drawing.done();
}

} // namespace nsa::test
