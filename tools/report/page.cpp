#include "tools/report/page.h"

#include "tools/report/style.h"

namespace nsa::report {
namespace {

constexpr std::string_view kPageStyle = R"(
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 1200px; padding: 0 1.25rem; }
h1 { font-size: 1.6rem; margin: 0 0 1rem; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .4rem; color: var(--quiet); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1.2rem; margin: 0; }
dt { color: var(--quiet); } dd { margin: 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .86rem; width: 100%; }
th, td { padding: .22rem .7rem .22rem 0; border-bottom: 1px solid var(--rule); vertical-align: top; text-align: left; }
th { color: var(--quiet); font-weight: 600; white-space: nowrap; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tr.good .number { font-weight: 600; } tr.bad td { color: var(--bad); } tr.quiet td { color: var(--quiet); }
.warning { color: var(--bad); font-weight: 600; }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 480px), 1fr)); gap: 1.2rem; }
figure { margin: 0; } figcaption { color: var(--quiet); font-size: .8rem; }
svg { width: 100%; height: auto; display: block; } summary { cursor: pointer; color: var(--quiet); }
)";

} // namespace

Page::Page(const std::string &title) : title(title) { body = Markup().element("h1", title).take(); }

void Page::heading(const std::string &text) { body += Markup().element("h2", text).take(); }
void Page::subheading(const std::string &text) { body += Markup().element("h3", text).take(); }
void Page::paragraph(const std::string &text) { body += Markup().element("p", text).take(); }
void Page::warning(const std::string &text) { body += Markup().element("p", text, {{"class", "warning"}}).take(); }

void Page::facts(const std::vector<std::pair<std::string, std::string>> &facts) {
  Markup markup;
  markup.open("dl");
  for (const auto &[name, value] : facts)
    markup.element("dt", name).element("dd", value);
  body += markup.take();
}

void Page::add(const Table &table) { body += table.html(); }

void Page::add(const std::vector<Plot> &plots) {
  Markup markup;
  markup.open("div", {{"class", "plots"}});
  for (const Plot &plot : plots)
    markup.raw(plot.svg());
  body += markup.take();
}

void Page::addFolded(const std::string &summary, const Table &table) {
  body += Markup().open("details").element("summary", summary).raw(table.html()).take();
}

std::string Page::html() const {
  Markup markup;
  markup.raw("<!DOCTYPE html>\n");
  markup.open("html", {{"xmlns", "http://www.w3.org/1999/xhtml"}, {"lang", "en"}});
  markup.open("head").empty("meta", {{"charset", "utf-8"}});
  markup.empty("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}});
  markup.element("title", title).open("style").raw(plotStyle()).raw(kPageStyle).close().close();
  markup.open("body").raw(body);
  return markup.take();
}

} // namespace nsa::report
