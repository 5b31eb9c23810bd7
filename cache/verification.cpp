#include "cache/verification.h"

#include "cache/pack/pack_digest.h"
#include "cache/rows/kernel_rows.h"
#include "runtime/base/manifest.h"

#include <map>

namespace nsa {

namespace {

using sqlite::Query;

class Verifier {
public:
  Verifier(CacheFile &file, Verification &result) : file(file), result(result) {}

  // False: nothing more can be said of the rows. The check ends with the first finding, as sqlite goes on to read rows
  // after it has found that pages are shared.
  bool checkStructure() {
    if (!isWhole())
      return false;
    Query broken(file.connection(), "PRAGMA foreign_key_check");
    while (broken.step())
      found("a row of '" + broken.text(0) + "' names a row of '" + broken.text(2) + "' that is not there");
    return ended(broken.code(), "foreign_key_check");
  }

  void checkKernels() {
    for (const KernelSummary &kernel : rowsOf(file.kernels())) {
      ++result.kernels;
      operators[kernel.content] = kernel.op;
      if (mayUnpack(kernel.binaryBytes))
        checkKernel(kernel.content);
    }
    if (unpacked > mostUnpacked())
      found("the kernels unpack to more than " + std::to_string(mostUnpacked()) +
            " bytes, which is beyond any compression; not all were looked at");
  }

  void checkChoices() {
    for (const StoredChoice &choice : rowsOf(file.choices())) {
      ++result.choices;
      const std::string name = "choice '" + choice.problem + "' on '" + choice.device + "' ";
      const auto kernel = operators.find(choice.content);
      if (kernel == operators.end())
        found(name + "names kernel " + choice.content + ", which is not there");
      else if (kernel->second != choice.problem.substr(0, choice.problem.find(' ')))
        found(name + "names kernel " + choice.content + ", which is of operator " + kernel->second);
    }
  }

  void checkRoutes() {
    for (const StoredRoute &route : rowsOf(file.routes())) {
      ++result.routes;
      if (route.threshold < StoredRoute::kNever)
        found("route '" + route.family + "' on '" + route.device + "' " + route.name + " has threshold " +
              std::to_string(route.threshold) + ", must be -1 (never) or a size");
    }
  }

  void checkPack(const SignatureRules &rules) {
    const PackFacts &facts = file.pack();
    Digest::Bytes evidence{}, digest{};
    if (ended(digestEvidence(file.connection(), evidence), "evidence") && evidence != facts.evidenceDigest)
      found("the evidence digest is not that of the evidence");
    if (ended(digestRows(file.connection(), facts.source, facts.evidenceDigest, digest), "rows") &&
        digest != facts.digest)
      found("the digest is not that of the rows");
    checkSignatures(facts, rules);
  }

  void found(std::string text) { result.findings.push_back(std::move(text)); }

private:
  // No rows where they cannot be read.
  template <typename Row> std::vector<Row> rowsOf(Result<std::vector<Row>> rows) {
    if (rows)
      return std::move(*rows);
    found(rows.status().toString());
    return {};
  }

  bool isWhole() {
    Query query(file.connection(), "PRAGMA integrity_check(1)");
    bool isFine = true;
    while (query.step())
      if (const std::string text = query.text(0); text != "ok") {
        found("integrity_check: " + text);
        isFine = false;
      }
    return ended(query.code(), "integrity_check") && isFine;
  }

  // Kernels unpack to three or four times their bytes.
  int64_t mostUnpacked() const {
    constexpr int64_t kLeast = int64_t{64} << 20, kMostCompression = 32;
    const int64_t bytes = file.connection().mostBytes();
    return bytes > (INT64_MAX - kLeast) / kMostCompression ? INT64_MAX : kLeast + kMostCompression * bytes;
  }

  bool mayUnpack(int64_t bytes) {
    if (bytes >= 0 && bytes <= kMaxBinaryBytes) // another size is refused before anything is unpacked
      unpacked += bytes;
    return unpacked <= mostUnpacked();
  }

  void checkKernel(const std::string &content) {
    KernelRow row;
    RowState state;
    if (!ended(readKernelRow(file.connection(), content, row, state), "kernel " + content) ||
        state == RowState::kIntact)
      return;
    StoredKernel kernel; // what is wrong with it
    if (!ended(readKernel(file.connection(), content, kernel, state), "kernel " + content))
      return;
    if (state != RowState::kIntact)
      return found("kernel " + content + ": its digest does not match");
    if (Result<Manifest> manifest = Manifest::parse(kernel.manifest); !manifest)
      return found("kernel " + content + ": manifest: " + manifest.status().toString());
    found("kernel " + content + ": template, operator, target or config differ from its manifest");
  }

  void checkSignatures(const PackFacts &facts, const SignatureRules &rules) {
    const std::vector<std::byte> message = signedMessage(facts.digest);
    bool isTrusted = false;
    for (const PackSignature &signature : facts.signatures) {
      if (!signature.key.verifies(message, signature.signature)) {
        found("the signature of key " + signature.key.hex() + " does not hold");
        continue;
      }
      result.signers.push_back(signature.key.hex());
      for (const PublicKey &key : rules.trusted)
        isTrusted = isTrusted || key == signature.key;
    }
    if (isTrusted || (rules.trusted.empty() && !rules.requireSignature))
      return;
    found(facts.signatures.empty() ? "it is not signed" : "no signature of a trusted key holds");
  }

  // Whether a statement ended well.
  bool ended(int code, const std::string &what) {
    if (code != SQLITE_OK)
      found(what + ": " + sqlite3_errstr(code));
    return code == SQLITE_OK;
  }

  CacheFile &file;
  Verification &result;
  int64_t unpacked = 0;
  std::map<std::string, std::string> operators; // by content
};

Verification verifyRows(CacheFile &file, const SignatureRules &rules) {
  Verification result;
  result.isPack = file.isPack();
  Verifier verifier(file, result);
  if (!verifier.checkStructure())
    return result;
  verifier.checkKernels();
  verifier.checkChoices();
  verifier.checkRoutes();
  if (result.isPack)
    verifier.checkPack(rules);
  else if (rules.requireSignature || !rules.trusted.empty())
    verifier.found("it is a database, and only packs are signed");
  return result;
}

} // namespace

Verification verifyCache(const std::string &path, const SignatureRules &rules) {
  Result<CacheFile> file = CacheFile::open(path, CacheFile::Check::kNothing);
  if (file)
    return verifyRows(*file, rules);
  Verification result;
  result.findings.push_back(file.status().toString());
  return result;
}

Result<CacheFile> openSource(const std::string &path, const SignatureRules &rules, Databases databases) {
  Result<CacheFile> file = CacheFile::open(path, CacheFile::Check::kRows, CacheFile::Empty::kRefused, rules);
  if (!file)
    return file;
  if (!file->isPack()) {
    if (databases == Databases::kRefused)
      return Status::error(ErrorCode::kIoError,
                           "database '" + path + "' is not used: a signature is required, and only packs are signed",
                           "export it as a pack and sign that, or take it where NSA_REQUIRE_SIGNATURE is not set");
    return file;
  }
  const std::vector<std::string> findings = verifyRows(*file, {}).findings;
  if (findings.empty())
    return file;
  const size_t more = findings.size() - 1;
  return packError(path, findings.front() + (more > 0 ? ", and " + std::to_string(more) + " more" : ""),
                   "take it again from where it was made; `nsa cache verify` names all that is wrong");
}

} // namespace nsa
