// The texts under which choices and thresholds are stored. A text that changes loses every choice that a database or a
// pack holds under it, so the digests below stay as they are.
#include "runtime/base/digest.h"
#include "runtime/engine/choices/problem_key.h"
#include "runtime/engine/choices/routes.h"
#include "runtime/engine/graph/pipeline.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>

using namespace nsa;

namespace {

constexpr int kKeyedRequests = 3000;
// Another operator has keys of its own, and a digest of its own belongs into a second list.
constexpr Operator kKeyedOperators[] = {Operator::kDense,   Operator::kWindow, Operator::kCompress,
                                        Operator::kCmp,     Operator::kSelect, Operator::kSel,
                                        Operator::kCombine, Operator::kNsa,    Operator::kDecode};

struct KeyedRequest {
  Spec spec;
  Maxima maxima;
};

// A valid request. Every draw takes the same numbers of `random` in the same order on every machine.
KeyedRequest drawKeyed(std::mt19937_64 &random) {
  const auto below = [&](int64_t count) { return static_cast<int32_t>(random() % static_cast<uint64_t>(count)); };
  const auto nearPower = [&](int64_t bits) { // the neighbours of a power of two belong to different buckets
    const int64_t power = int64_t{1} << below(bits);
    return std::max<int64_t>(1, power + below(3) - 1);
  };
  KeyedRequest request;
  Spec &spec = request.spec;
  spec.op = kKeyedOperators[below(std::size(kKeyedOperators))];
  spec.dtype = static_cast<DType>(below(3));
  spec.layout = static_cast<Layout>(below(2));
  spec.kvHeads = 1 + below(9);
  spec.queryHeads = spec.kvHeads * (1 + below(16));
  spec.qkDim = 8 * (1 + below(32));
  spec.vDim = 8 * (1 + below(32));
  spec.window = static_cast<int32_t>(nearPower(12));
  spec.scale = static_cast<float>(below(2)) * 0.25f;
  spec.cmpStride = 1 << below(6);
  spec.cmpBlock = spec.cmpStride * (1 + below(4));
  spec.selBlock = spec.cmpStride * (1 + below(8));
  spec.selCount = 4 + below(61);
  spec.initBlocks = below(3);
  spec.localBlocks = 1 + below(2);
  spec.cmpKind = static_cast<CmpKind>(below(3));
  spec.mlpHidden = 16 * (1 + below(8));
  spec.mlpActivation = static_cast<Activation>(below(3));
  spec.gate = static_cast<Gate>(below(3));
  spec.gatePerGroup = below(2) != 0;
  spec.branches = 1 + below(kAllBranches);
  const int32_t pages = below(3);
  spec.pageSize = spec.op == Operator::kDecode ? pages * spec.selBlock : 0;
  request.maxima.batch = nearPower(9);
  request.maxima.seqlenQ = nearPower(spec.op == Operator::kDecode ? 5 : 18);
  request.maxima.seqlenK = std::max(nearPower(19), request.maxima.seqlenQ);
  request.maxima.tokensQ = std::min<int64_t>(request.maxima.batch * request.maxima.seqlenQ, 1 << 30);
  return request;
}

// The digest of texts, in the order in which they were made.
class KeyTexts {
public:
  void add(const std::string &text) {
    digest.field(text);
    distinct.insert(text);
  }
  std::string finish() { return std::to_string(distinct.size()) + " " + digest.finishHex().substr(0, 32); }

private:
  Digest digest;
  std::set<std::string> distinct;
};

TEST(StoredKeys, KeepTheirText) {
  std::mt19937_64 random(20240607);
  std::map<std::string, KeyTexts> texts; // by the operator of the kernel, or by the kind of threshold
  for (int i = 0; i < kKeyedRequests; ++i) {
    const KeyedRequest request = drawKeyed(random);
    ASSERT_TRUE(request.spec.validate().isOk()) << request.spec.validate().toString();
    ASSERT_TRUE(request.maxima.validate(request.spec).isOk()) << request.maxima.validate(request.spec).toString();
    for (const Step &step : stepsOf(request.spec, request.maxima)) {
      const Problem problem = Problem::make(step.spec, step.maxima);
      texts[std::string(operatorName(step.spec.op))].add(problem.key());
      ASSERT_EQ(ProblemKey::of(problem).text(), problem.key());
      ASSERT_EQ(ProblemKey::parse(problem.key()), ProblemKey::of(problem)) << problem.key();
      if (hasVariants(step.spec.op) || step.spec.op == Operator::kSel)
        texts["family of " + std::string(operatorName(step.spec.op))].add(routeFamily(step.spec));
    }
    if (request.spec.op == Operator::kDecode) {
      texts["splits"].add(splitsRoute(request.spec, request.maxima));
      texts["family of splits"].add(splitsFamily(request.spec));
    }
  }
  std::map<std::string, std::string> found;
  for (auto &[name, own] : texts)
    found[name] = own.finish();
  // How many of the texts differ, and the digest of all of them.
  const std::map<std::string, std::string> kept = {
      {"append", "321 761e0df1779b860168f08a6183396389"},
      {"ascend", "126 86673356e1acc372680793bbc0efcc38"},
      {"cache_sequences", "286 dfce815f0f4d48f420bf3803bb8bbdac"},
      {"choose", "126 0542c6963086969fc3b8b8c16b51252e"},
      {"cmp", "1069 e7d2ed7af0c4ced54490ba6a705f4565"},
      {"combine", "759 35c0d304c7780a8c51fffcd63df81858"},
      {"compress", "925 dc43dd77fb33376ae6825d3fa6aa9ee6"},
      {"dense", "452 b2070828dda32e7154769f8193bd6d12"},
      {"family of cmp", "1069 990fd6d14238180c54ba8ac3d4d6adb0"},
      {"family of dense", "452 ee1e996bd08148a5009eb8e32517e68d"},
      {"family of sel", "501 909bad383d864cd68e38875f181e3822"},
      {"family of splits", "321 0a9f090bee892063ae9e8209b356c4ce"},
      {"family of window", "544 c1d48b41ffcafb051d6d863b57ba3a0f"},
      {"merge", "233 1778c01881a22df66c026f9326aa19db"},
      {"rank", "47 1e16ddb72baec379de9304db67e8aaaa"},
      {"scores", "126 731599ce041c0901be0e9cf0d8eb88fe"},
      {"sel", "501 acadb6eae1220eaccb723dceaf9be0da"},
      {"select", "617 5108a06ceab6a05a0e5f055d7ff43af7"},
      {"sequences", "224 74b52ce88e70f065b71c345b04ddc33e"},
      {"split_cmp", "201 a6c7010ef5346096972a3e3e448c62b6"},
      {"split_sel_win", "199 286fb9fbbf665d39766c20019c01b649"},
      {"splits", "190 6e5f55e66a7f6d9f12158a677e38903e"},
      {"window", "544 ad1bee30b09029a3c41338c080e98345"},
  };
  EXPECT_EQ(found, kept);
}

} // namespace
