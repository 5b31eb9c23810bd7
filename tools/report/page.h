// Makes a report as one HTML file that needs no other file: it is well-formed XML, has no script, and is light or dark
// as the reader's system asks.
// Thread-safety: one thread at a time may use a Page.
#pragma once

#include "tools/report/markup.h"
#include "tools/report/plot.h"
#include "tools/report/table.h"

#include <string>
#include <utility>
#include <vector>

namespace nsa::report {

class Page {
public:
  explicit Page(const std::string &title);

  void heading(const std::string &text);
  void subheading(const std::string &text);
  void paragraph(const std::string &text);
  // Adds a highlighted paragraph that reports a fault.
  void warning(const std::string &text);
  // Adds a list of names and values, one pair in a line.
  void facts(const std::vector<std::pair<std::string, std::string>> &facts);
  void add(const Table &table);
  // Adds the plots to the page, side by side if the page is wide enough.
  void add(const std::vector<Plot> &plots);
  // Adds a table that is folded until the reader opens it with a click on its title line.
  void addFolded(const std::string &summary, const Table &table);

  std::string html() const;

private:
  std::string title, body;
};

} // namespace nsa::report
