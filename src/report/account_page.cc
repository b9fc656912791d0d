#include "report/account_page.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "audit/why.h"
#include "base/embedded.h"
#include "report/account_tables.h"
#include "report/audit_json.h"
#include "report/html.h"
#include "report/price_format.h"
#include "report/units.h"

namespace boltbeam::report {
namespace {

using Json = nlohmann::ordered_json;

std::string Paragraph(const std::string& text, const char* type = "") {
  return fmt::format("<p{}>{}</p>\n", type, EscapeHtml(text));
}

std::string Scrolling(const Table& table) { return report::Scrolling(table.Html()); }

std::string Folded(const std::string& summary, const std::string& content) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", EscapeHtml(summary), content);
}

std::string Chart(const std::string& name, std::size_t index, const std::string& label) {
  return fmt::format("<div class=\"chart\" data-chart=\"{}\" data-index=\"{}\" role=\"img\" aria-label=\"{}\"></div>\n",
                     name, index, EscapeHtml(label));
}

std::string Figure(const std::string& figure, const std::string& what) {
  return fmt::format("<li><b>{}</b>{}</li>\n", EscapeHtml(figure), EscapeHtml(what));
}

std::string Causes(const audit::Account& account, std::size_t index) {
  if (account.causes.empty()) return Paragraph("Nothing beyond what the session can't tell apart.");
  std::string text = Paragraph(TollText(account)) + Paragraph(FindingsText(account));
  text += Chart("recoverable", index,
                "What each cure gives back at most, findings filled and other lines hollow; the table below has the "
                "numbers");
  text += Paragraph("Filled bars are findings, hollow ones are ordinary lines.", " class=\"soft\"");
  text += Scrolling(CausesTable(account));
  std::string evidence = "<ul>\n";
  for (const audit::Cause& cause : account.causes) {
    const std::string part = cause.role.empty() ? "the token" : cause.role + " " + cause.format;
    evidence += fmt::format("<li><b>{}, {}</b>{}: {}.</li>\n", EscapeHtml(part), EscapeHtml(cause.kind),
                            cause.is_finding ? " (a finding)" : "", EscapeHtml(cause.evidence));
  }
  return text + Folded("The evidence", evidence + "</ul>\n");
}

// As text with commas: a page of several depths has thousands.
std::string Spans(const audit::Audit& audit, std::size_t index) {
  std::string text = "thread,kernel,layer,begin_us,us\n";
  for (const audit::TimelineSpan& span : audit.timelines[index].spans) {
    const engine::StepInfo* step = span.step < 0 ? nullptr : &audit.steps[static_cast<std::size_t>(span.step)];
    text += fmt::format("{},{},{},{:.1f},{:.2f}\n", span.thread, step ? step->role : "barrier",
                        step && step->layer >= 0 ? std::to_string(step->layer) : "", span.begin_ns / 1e3,
                        (span.end_ns - span.begin_ns) / 1e3);
  }
  return "<pre>" + EscapeHtml(text) + "</pre>\n";
}

std::string DepthSection(const audit::Audit& audit, std::size_t index) {
  const audit::Account& account = audit.accounts[index];
  const audit::Token& token = account.token;
  std::string text = fmt::format("<section data-index=\"{}\">\n<h2>A token at depth {}</h2>\n", index, account.depth);
  text += "<ul class=\"figures\">\n" + Figure(Decimal(account.TokensPerSecond(), 1), "tokens a second") +
          Figure(Decimal(account.LimitTokensPerSecond(), 1), "the limit") +
          Figure(Percent(token.floor_ns / token.now_ns), "of the limit") +
          Figure(Decimal(account.read_bandwidth_gb_s, 1), "GB/s read") + "</ul>\n";
  text += Paragraph(VerdictText(account));
  text += "<h3>Where the time goes</h3>\n" +
          Chart("waterfall", index, "The token from its floor up; the table below has the lines");
  text += Scrolling(TieOutTable(account)) + Scrolling(PartsTable(account));
  text += "<h3>What would give time back</h3>\n" + Causes(account, index);
  text += "<h3>Every part under the roof</h3>\n" +
          Chart("roofline", index,
                "Operations a second over operations a byte, a point for each part; the parts table has the numbers");
  text += Paragraph(
      "The line is what the memory gives at each number of operations a byte. A point on it is at its floor; "
      "the larger the point, the larger its share of the token. Every part that reads memory has a point; kernels "
      "that only prepare activations count one operation for each value that they read. What comes from a cache may "
      "lie above the line.",
      " class=\"soft\"");
  text += "<h3>In the token and alone</h3>\n" + Scrolling(AloneTable(account));
  text += "<h3>Layer by layer</h3>\n" +
          Chart("layers", index, "Time over floor of each part in each layer; the table below has the numbers") +
          Folded("The layers as a table", Scrolling(LayersTable(account)));
  text += "<h3>One token, thread by thread</h3>\n" +
          Chart("timeline", index, "When each thread was in which kernel; the table below has the spans") +
          Scrolling(ThreadsTable(account)) + Scrolling(WallTable(account)) +
          Folded("The token's spans as a table", Spans(audit, index));
  return text + Paragraph(MethodText(audit, account), " class=\"soft\"") + "</section>\n";
}

std::string Compared(const OtherProgram& comparison) {
  return fmt::format("<section>\n<h2>Beside {}</h2>\n", EscapeHtml(Inert(comparison.other))) +
         Chart("beside", 0, "Regions of both programs; the table below has the numbers") +
         Scrolling(ComparisonTable(comparison)) +
         Paragraph(fmt::format("Residual: {}. {}", Duration(comparison.residual_ns), Inert(comparison.sentence))) +
         "</section>\n";
}

std::string Closing(const AuditSubject& subject, const audit::Audit& audit) {
  std::string text;
  if (!subject.facts.empty()) {
    text += "<section>\n<h2>The chip, measured and published</h2>\n" + Scrolling(FactsTable(subject.facts)) +
            Paragraph("Measured figures are used; published and detected ones are only shown.", " class=\"soft\"") +
            "</section>\n";
  }
  text += "<section>\n<h2>What this can't tell you</h2>\n<ul>\n";
  for (const std::string& limit : Limits(subject, audit)) text += "<li>" + EscapeHtml(limit) + "</li>\n";
  for (const std::string& note : AuditNotes(audit)) text += "<li>" + EscapeHtml(note) + "</li>\n";
  text += "</ul>\n</section>\n<section>\n<h2>Words</h2>\n<dl>\n";
  for (const auto& [word, meaning] : Glossary()) {
    text += fmt::format("<dt>{}</dt><dd>{}</dd>\n", EscapeHtml(word), EscapeHtml(meaning));
  }
  return text + "</dl>\n</section>\n";
}

// In a script element only the end tag and comments are special: no < remains, and nothing but ASCII.
std::string ForScript(const Json& document) {
  std::string text = document.dump(-1, ' ', true, Json::error_handler_t::replace);
  for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at))
    text.replace(at, 1, "\\u003c");
  return text;
}

constexpr const char* kVegaNotice =
    "// Vega. Copyright (c) 2015-2021, University of Washington Interactive Data Lab. All rights reserved.\n"
    "// Redistribution and use in source and binary forms, with or without modification, are permitted under the\n"
    "// BSD 3-clause licence, https://opensource.org/licenses/BSD-3-Clause. Provided as is, without any warranty.\n";

Result<std::string> Scripts() {
  BOLTBEAM_ASSIGN(const std::string_view modules, base::Embedded("report/modules.js"));
  BOLTBEAM_ASSIGN(const std::string_view page, base::Embedded("report/page.js"));
  std::string text = std::string(modules) + kVegaNotice;
  for (const base::EmbeddedFile& file : base::VegaScripts()) {
    // A source map would be asked for beside the file.
    const std::string_view script = file.text.substr(0, file.text.find("//# sourceMappingURL"));
    const std::string_view name = file.path.substr(0, file.path.find(".min.js"));
    text += fmt::format("bbModules['{}'] = (exports, module, require) => {{\n{}\n}};\n", name, script);
  }
  return text + std::string(page);
}

}  // namespace

Result<std::string> AuditPage(const AuditSubject& subject, const audit::Audit& audit,
                              const std::optional<OtherProgram>& comparison, const std::optional<lab::Price>& price) {
  BOLTBEAM_ASSIGN(const std::string_view css, base::Embedded("report/page.css"));
  BOLTBEAM_ASSIGN(const std::string scripts, Scripts());
  Json document = AuditDocument(subject, audit, true);
  document["peak_gop_s"] = subject.peak_gop_s;
  document["steps"] = Json::array();
  for (const engine::StepInfo& step : audit.steps)
    document["steps"].push_back({{"role", step.role}, {"layer", step.layer}});
  std::string body;
  for (std::size_t index = 0; index < audit.accounts.size(); ++index) body += DepthSection(audit, index);
  body += "<section>\n<h2>Against the depth</h2>\n";
  if (audit.accounts.size() > 1) body += Chart("curve", 0, "The measured token and its floor over the depth");
  body += Scrolling(DepthsTable(audit)) + "</section>\n";
  if (comparison) {
    body += Compared(*comparison);
    Json& beside = document["comparison"];
    beside["other"] = comparison->other;
    beside["residual_ns"] = comparison->residual_ns;
    for (const OtherProgram::Region& region : comparison->regions) {
      beside["regions"].push_back(
          {{"region", region.name}, {"ours_ns", region.ours_ns}, {"theirs_ns", region.theirs_ns}});
    }
    const auto optional = [](const std::optional<double>& ns) { return ns ? Json(*ns) : Json(nullptr); };
    for (const OtherProgram::Term& term : comparison->terms) {
      beside["terms"].push_back(
          {{"term", term.name}, {"ours_ns", optional(term.ours_ns)}, {"theirs_ns", optional(term.theirs_ns)}});
    }
  }
  if (price) body += "<section>\n<h2>What a token costs</h2>\n" + PriceSections(*price, 3) + "</section>\n";
  body += Closing(subject, audit);
  const std::string title = "Audit of " + Inert(std::filesystem::path(subject.model_filename).filename().string());
  const std::string about =
      fmt::format("{}, {} threads, {}; {}; boltbeam {}", Inert(subject.model_type), subject.threads,
                  Inert(subject.machine), audit.environment.date, audit.environment.boltbeam_version);
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<link rel=\"icon\" href=\"data:,\">\n"
      "<title>{0}</title>\n<style>\n{1}</style>\n</head>\n<body>\n<header>\n<h1>{0}</h1>\n<p class=\"soft\">{2}</p>\n"
      "<nav id=\"depths\" aria-label=\"Depths\"></nav>\n</header>\n<main>\n{3}</main>\n"
      "<script type=\"application/json\" id=\"account\">{4}</script>\n<script>\n{5}</script>\n</body>\n</html>\n",
      EscapeHtml(title), css, EscapeHtml(about), body, ForScript(document), scripts);
}

}  // namespace boltbeam::report
