#include "tools/render_tables/page.h"

#include "tools/render_tables/figure.h"
#include "tools/render_tables/summary.h"

#include <algorithm>
#include <cstdlib>
#include <regex>
#include <sstream>

namespace nsa::tables {
namespace {

constexpr std::string_view kClose = " -->", kEnd = "<!-- end -->";
constexpr size_t kShortCommit = 12;

Status broken(const std::string &marker, const std::string &why) {
  return Status::error(ErrorCode::kInvalidArgument, "`" + marker + "`: " + why);
}

class Renderer {
public:
  Renderer(const std::string &page, Records &records, Ages ages) : records(records) {
    static const std::regex written(R"(source ([0-9a-f]+), [-0-9]+, (\d+) commits? old)");
    if (ages == Ages::kKept)
      for (std::sregex_iterator match(page.begin(), page.end(), written), none; match != none; ++match)
        writtenAges[match->str(1)] = std::strtoll(match->str(2).c_str(), nullptr, 10);
  }

  // What replaces the text between the marker and its end.
  Result<std::string> render(const std::string &kind, const std::string &text) {
    if (kind == "table")
      return table(text);
    if (kind == "figure")
      return figure(text);
    if (kind == "record")
      return record(text);
    if (kind == "summary")
      return summary(text);
    return value(text);
  }
  std::map<std::string, std::string> takeFigures() { return std::move(figures); }

private:
  // ", 3 commits old"; "" where that is not known.
  std::string ageText(const Source &source) {
    std::optional<int64_t> age = records.age(source);
    const auto written = writtenAges.find(source.commit);
    if (written != writtenAges.end() &&
        (!age || std::abs(*age - written->second) <= std::max<int64_t>(written->second, 64)))
      age = written->second;
    return age ? ", " + std::to_string(*age) + (*age == 1 ? " commit old" : " commits old") : "";
  }

  std::string headLine(const Json &report) {
    return machineLine(report) +
           (report.contains("sources") ? ", " + sourceLine(report) : ageText(Records::sourcesOf(report).front()));
  }

  std::string sourceLine(const Json &report) {
    std::string line;
    for (const Source &source : Records::sourcesOf(report))
      line += (line.empty() ? "" : "; ") + source.what + ": " +
              (source.repository.empty() ? "source " + source.commit
                                         : source.repository + " " + source.commit.substr(0, kShortCommit)) +
              ", " + source.date + ageText(source);
    return line;
  }

  Result<std::string> table(const std::string &name) {
    const bool isOne = name.find('/') != std::string::npos;
    const std::vector<std::string> names = isOne ? std::vector<std::string>{name} : records.find(name);
    if (names.empty())
      return broken("table:" + name, "no folder of bench/results holds a " + name + ".json");
    std::string text = "\n";
    for (const std::string &one : names) {
      NSA_ASSIGN_OR_RETURN(const Json *read, records.read(one));
      const Json &report = *read;
      const bool isPlain = report.contains("table"); // the attention bench's are made of contenders
      const std::string_view file = std::string_view(one).substr(one.rfind('/') + 1);
      const bool isOfAttention = file.starts_with("attention") || file.starts_with("gradients");
      if (!report.contains("results") || !report.contains("machine") || (!isPlain && !isOfAttention))
        return broken("table:" + name, one + ".json is no result of a bench that has a table");
      text += (text.size() == 1 ? "" : "\n") + headLine(report) + "\n\n" +
              (isPlain ? plainTable(report) : attentionTable(report));
    }
    return text;
  }

  Result<std::string> figure(const std::string &name) {
    NSA_ASSIGN_OR_RETURN(const Json *read, records.read(name));
    if (!read->contains("results") || !read->contains("machine") || !read->contains("figure"))
      return broken("figure:" + name, name + ".json is no result of a program that has a figure");
    std::string path = "figures/" + name + ".svg";
    path[path.rfind('/')] = '-'; // no folder for each device
    figures[path] = figureFile(*read);
    return "\n" + headLine(*read) + "\n\n![" + figureTitle(*read) + "](" + path + ")\n";
  }

  Result<std::string> summary(const std::string &device) {
    SummaryRecords found;
    for (const char *name : {"prefill", "decode_step/one_sequence", "decode_step/batches", "startup", "peers"}) {
      NSA_ASSIGN_OR_RETURN(const Json *read, records.read(device + "/" + name));
      if (!read->contains("results"))
        return broken("summary:" + device, device + "/" + name + ".json has no results");
      const std::string_view record = name;
      if (record.starts_with("decode_step/"))
        found.decode.push_back(read);
      else
        (record == "prefill" ? found.prefill : record == "startup" ? found.startup : found.peers) = read;
    }
    return "\n" + summaryTable(found, [this](const Json &report) {
             const Source source = Records::sourcesOf(report).front();
             return "source " + source.commit + ", " + source.date + ageText(source);
           });
  }

  Result<std::string> record(const std::string &name) {
    NSA_ASSIGN_OR_RETURN(const Json *read, records.read(name));
    if (name.starts_with("packs/"))
      return sourceLine(*read);
    if (!read->contains("machine"))
      return broken("record:" + name, "the file does not say on which machine it was measured");
    return headLine(*read);
  }

  Result<std::string> value(const std::string &text) {
    std::istringstream words(text);
    std::string name, field, conditions;
    words >> name >> field >> std::ws;
    std::getline(words, conditions);
    NSA_ASSIGN_OR_RETURN(const Json *read, records.read(name));
    if (field.starts_with("/")) {
      const Json::json_pointer pointer(field);
      return read->contains(pointer) ? Result<std::string>(numberText(read->at(pointer)))
                                     : broken("value:" + text, "the file has no " + field);
    }
    const size_t dot = field.find('.');
    const std::string array = dot == std::string::npos ? "results" : field.substr(0, dot);
    field = field.substr(dot + 1); // after npos all of it
    const auto results = read->find(array);
    if (results == read->end())
      return broken("value:" + text, "the file has no " + array);
    const Json *found = nullptr;
    for (const Json &row : *results) {
      if (!holds(row, conditions))
        continue;
      if (found)
        return broken("value:" + text, "more than one of " + array + " fulfils the conditions");
      found = &row;
    }
    if (!found || !found->contains(field))
      return broken("value:" + text, found ? "it has no " + field : "none of " + array + " fulfils the conditions");
    return numberText((*found)[field]);
  }

  static bool holds(const Json &row, const std::string &conditions) {
    constexpr std::string_view kAnd = " & ";
    for (size_t begin = 0; begin < conditions.size();) {
      const size_t end = std::min(conditions.find(kAnd, begin), conditions.size());
      const size_t equals = conditions.find('=', begin);
      if (equals >= end)
        return false;
      const auto found = row.find(conditions.substr(begin, equals - begin));
      const std::string wanted = conditions.substr(equals + 1, end - equals - 1);
      if (found == row.end() || (found->is_string() ? found->get<std::string>() : found->dump()) != wanted)
        return false;
      begin = end + kAnd.size();
    }
    return true;
  }

  Records &records;
  std::map<std::string, int64_t> writtenAges; // by commit
  std::map<std::string, std::string> figures; // as in RenderedPage
};

// A number with a unit, a rate or time named anywhere, or a cell that begins with a decimal fraction. Code is no
// measurement.
bool holdsMeasurement(const std::string &table) {
  static const std::regex code("`[^`]*`");
  static const std::regex measured(
      R"([0-9] ?(ms|us|ns|s|%|clocks|cycles)(?![A-Za-z0-9_])|[TG]FLOP/s|[TG]B/s|\b(ms|us|ns)\b|\| [*]*[0-9]+\.[0-9])");
  return std::regex_search(std::regex_replace(table, code, ""), measured);
}

bool saysItsSource(const std::string &line) {
  static const std::regex unrecorded(R"(^\*Not recorded in a file: .*20\d\d-\d\d-\d\d.*\b[0-9a-f]{7,}\b.*\*$)");
  return std::regex_search(line, unrecorded) || line.starts_with("*Predicted: ") || line.starts_with("*Computed: ");
}

} // namespace

Result<RenderedPage> renderPage(const std::string &page, Records &records, Ages ages) {
  static const std::regex begin("<!-- (table|figure|record|value|summary):");
  Renderer renderer(page, records, ages);
  std::string output;
  auto position = page.begin();
  for (std::smatch match; std::regex_search(position, page.end(), match, begin);) {
    const size_t text = static_cast<size_t>(match[0].second - page.begin());
    const size_t close = page.find(kClose, text), end = page.find(kEnd, text);
    const std::string marker = page.substr(text, std::min(close, page.size()) - text);
    if (end == std::string::npos || end < close)
      return broken(match.str(1) + ":" + marker, "has no `<!-- end -->`");
    NSA_ASSIGN_OR_RETURN(const std::string rendered, renderer.render(match.str(1), marker));
    output.append(position, page.begin() + static_cast<std::ptrdiff_t>(close + kClose.size())).append(rendered);
    position = page.begin() + static_cast<std::ptrdiff_t>(end);
  }
  return RenderedPage{output.append(position, page.end()), renderer.takeFigures()};
}

std::vector<int> tablesWithoutSource(const std::string &page) {
  std::vector<int> found;
  std::istringstream lines(page);
  std::string table;
  int first = 0;
  bool isRendered = false, isOver = false;
  // `after`: the first line with text behind the table.
  const auto judge = [&](const std::string &after) {
    if (!isRendered && table.find("<!-- value:") == std::string::npos && holdsMeasurement(table) &&
        !saysItsSource(after))
      found.push_back(first);
    table.clear();
  };
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const bool isRow = line.starts_with("|");
    if (!table.empty() && !line.empty() && (isOver || !isRow))
      judge(line);
    isOver = !isRow;
    if (isRow) {
      first = table.empty() ? number : first;
      table += line + "\n";
    }
    if (line.find("<!-- table:") != std::string::npos || line.find("<!-- summary:") != std::string::npos)
      isRendered = true;
    if (line.find(kEnd) != std::string::npos)
      isRendered = false;
  }
  if (!table.empty())
    judge("");
  return found;
}

} // namespace nsa::tables
