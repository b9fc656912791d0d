// boltbeam price: what a token costs at a rate, rented, owned and hosted.
#include <array>
#include <cmath>
#include <memory>
#include <optional>

#include "base/paths.h"
#include "chip/facts.h"
#include "command.h"
#include "lab/prices.h"
#include "model/model.h"
#include "report/price_format.h"
#include "roofline/bound.h"

namespace boltbeam::app {
namespace {

/// A flag for an input of the list of prices.
struct InputFlag {
  const char* name;
  const char* flag;
  const char* help;
};
constexpr std::array<InputFlag, 8> kInputs = {{
    {"rent_usd_per_hour", "--rent", "US dollars an hour of renting the machine"},
    {"card_usd", "--card", "US dollars of buying it"},
    {"power_w", "--power", "Watts, on average"},
    {"usd_per_kwh", "--kwh", "US dollars a kWh"},
    {"amortisation_years", "--years", "Years in which it is paid off"},
    {"hosted_usd_per_million", "--hosted", "US dollars for a million hosted tokens"},
    {"reseller_fee_pct", "--fee", "Percent that a reseller adds"},
    {"load", "--load", "The share of all hours in which tokens are made"},
}};

struct Arguments {
  lab::PriceQuestion question;
  std::array<std::optional<double>, kInputs.size()> inputs;
  std::string model, chip, prices;
  std::uint64_t depth = 0;
};

/// The floor of a model on a chip, that of its batch, and M*.
Result<void> AddFloor(const Globals& globals, const Arguments& arguments, lab::PriceQuestion& question) {
  const base::Paths paths = base::ResolvePaths(globals.home);
  BOLTBEAM_ASSIGN(const chip::Chip chip, arguments.chip.empty()
                                             ? chip::ThisMachine(paths.data.string())
                                             : chip::FindChip(arguments.chip, paths.config.string()));
  BOLTBEAM_ASSIGN(const roofline::Roof roof, roofline::RoofOf(chip));
  BOLTBEAM_ASSIGN(const model::Model model, model::Model::Load(arguments.model));
  roofline::BoundOptions options;
  options.depths = {arguments.depth};
  BOLTBEAM_ASSIGN(const roofline::Bound bound, roofline::ComputeBound(model, roof, options));
  const bool has_own = question.crossover || question.floor_tok_s;  // what the flags state goes before bound's
  if (!question.crossover) question.crossover = bound.crossover_batch;
  if (!question.floor_tok_s) question.floor_tok_s = bound.pass.limit_tok_s();
  if (has_own) return {};
  constexpr double kMostSequences = 1 << 20;
  if (!(question.batch > 1 && question.batch <= kMostSequences)) return {};
  options.batch = static_cast<std::uint64_t>(question.batch);
  BOLTBEAM_ASSIGN(const roofline::Bound together, roofline::ComputeBound(model, roof, options));
  question.batch_floor_tok_s = together.pass.limit_tok_s();
  return {};
}

Result<void> Price(const Globals& globals, const Arguments& arguments) {
  const std::string config = base::ResolvePaths(globals.home).config.string();
  BOLTBEAM_ASSIGN(lab::PriceList list, lab::LoadPrices(config, arguments.prices));
  for (std::size_t i = 0; i < kInputs.size(); ++i) {
    if (arguments.inputs[i]) list.Set(kInputs[i].name, *arguments.inputs[i]);
  }
  lab::PriceQuestion question = arguments.question;
  if (arguments.model.empty() && (!arguments.chip.empty() || arguments.depth != 0)) {
    return Fail(Code::kUsage, arguments.chip.empty() ? "--depth" : "--chip", "no model",
                "a model, whose floor they are of");
  }
  if (!arguments.model.empty()) BOLTBEAM_TRY(AddFloor(globals, arguments, question));
  BOLTBEAM_ASSIGN(const lab::Price price, lab::ComputePrice(question, list));
  if (globals.format == "html") return WriteOutput(globals, report::PriceHtml(price));
  return WriteOutput(globals, report::PriceReport(price, report::FormOf(globals.format)));
}

}  // namespace

void AddPrice(CLI::App& app, Globals& globals) {
  const auto arguments = std::make_shared<Arguments>();
  lab::PriceQuestion& question = arguments->question;
  CLI::App* command = app.add_subcommand("price", "What a token costs: at a rate, at the floor, rented, owned, hosted");
  command->add_option("model", arguments->model, "A GGUF file: its floor prices the gap")->type_name("MODEL");
  command->add_option("--rate", question.tok_s, "Tokens per second of one sequence by itself")->required();
  command->add_option("--floor-rate", question.floor_tok_s, "Tokens per second at the memory's floor");
  command->add_option("--chip", arguments->chip, "Of the floor: a chip of `boltbeam chip list`, or a JSON file")
      ->type_name("NAME|FILE");
  command->add_option("-d,--depth", arguments->depth, "Of the floor: tokens in the context")
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str();
  command->add_option("--batch", question.batch, "Sequences that are decoded together")->capture_default_str();
  command->add_option("--crossover", question.crossover, "M*: how many of them until sums bind");
  command->add_option("--prompt-rate", question.prompt_tok_s, "Tokens per second while a prompt is read");
  command->add_option("--prompt-tokens", question.prompt_tokens, "Of one request: tokens of its prompt");
  command->add_option("--generated-tokens", question.generated_tokens, "Of one request: tokens generated");
  for (std::size_t i = 0; i < kInputs.size(); ++i) {
    command->add_option(kInputs[i].flag, arguments->inputs[i], kInputs[i].help);
  }
  command->add_option("--prices", arguments->prices, "A file of inputs; prices.json in the config folder is read first")
      ->type_name("FILE");
  AddOutputFlags(*command, globals, {"text", "json", "csv", "md", "html"});
  command->callback([arguments, &globals] { Finish(globals, Price(globals, *arguments)); });
}

}  // namespace boltbeam::app
