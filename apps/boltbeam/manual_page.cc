#include "manual_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "arguments.h"
#include "base/version.h"

namespace boltbeam::app {
namespace {

/// For troff: a dash that stays a dash, and no line that begins with a dot or a quote.
std::string Escape(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else if ((c == '.' || c == '\'') && (escaped.empty() || escaped.back() == '\n')) {
      escaped += std::string("\\&") + c;
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string Heading(const std::string& title, const std::string& what) {
  return fmt::format(".TH {} 1 \"\" \"boltbeam {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n", title, base::kVersion,
                     title, Escape(what));
}

bool IsShown(const CLI::Option& option) { return !option.get_group().empty(); }

/// "-t, --threads" as help writes it.
std::string NamesOf(const CLI::Option& option) {
  return HelpFormatter().make_option_name(&option, option.get_positional());
}

/// Every spelling of an option: "-t", "--threads".
std::vector<std::string> Spellings(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

std::string OptionText(const CLI::Option& option) {
  std::string value = option.get_items_expected_max() == 0 ? "" : option.get_type_name();
  std::ranges::replace(value, '\n', ' ');
  const std::string fallback = option.get_default_str();
  return fmt::format(".TP\n.B {}\n.I {}\n{}{}{}\n", Escape(NamesOf(option)), Escape(value),
                     Escape(option.get_description()), fallback.empty() ? "" : "\nDefault: " + Escape(fallback) + ".",
                     option.get_required() ? "\nRequired." : "");
}

std::string OptionsOf(const CLI::App& command) {
  std::string positional, flags;
  for (const CLI::Option* option : command.get_options()) {
    if (!IsShown(*option)) continue;
    (option->get_positional() ? positional : flags) += OptionText(*option);
  }
  std::string text;
  if (!positional.empty()) text += ".SH ARGUMENTS\n" + positional;
  return text + ".SH OPTIONS\n" + flags;
}

std::string FullName(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : FullName(*parent) + " " + command.get_name();
}

std::string Synopsis(const CLI::App& command) {
  std::string text = fmt::format(".SH SYNOPSIS\n.B {}\n", Escape(FullName(command)));
  if (!VisibleCommands(command).empty()) text += ".I COMMAND\n";
  for (const CLI::Option* option : command.get_options()) {
    if (IsShown(*option) && option->get_positional()) {
      text += option->get_required() ? fmt::format("{}\n", Escape(option->get_name()))
                                     : fmt::format("[{}]\n", Escape(option->get_name()));
    }
  }
  return text + "[\\fIOPTIONS\\fR]\n";
}

/// Words that follow one another on a command line, for completion.
std::string Words(const CLI::App& command) {
  std::string words;
  for (const CLI::App* inner : VisibleCommands(command)) words += inner->get_name() + " ";
  for (const CLI::Option* option : command.get_options()) {
    if (!IsShown(*option)) continue;
    for (const std::string& name : Spellings(*option)) words += name + " ";
  }
  if (!words.empty()) words.pop_back();
  return words;
}

/// In single quotes of a shell.
std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

/// Each command line that has words of its own, as in "boltbeam chip measure".
void AddCases(const CLI::App& command, std::string& cases) {
  cases += fmt::format("    {}) found={} ;;\n", Quoted(FullName(command)), Quoted(Words(command)));
  for (const CLI::App* inner : VisibleCommands(command)) AddCases(*inner, cases);
}

void AddFish(const CLI::App& program, const CLI::App& command, std::string& text) {
  std::string condition = "__fish_use_subcommand";
  if (&command != &program) condition = "__fish_seen_subcommand_from " + command.get_name();
  for (const CLI::App* inner : VisibleCommands(command)) {
    text += fmt::format("complete -c boltbeam -n {} -f -a {} -d {}\n", Quoted(condition), Quoted(inner->get_name()),
                        Quoted(inner->get_description()));
  }
  for (const CLI::Option* option : command.get_options()) {
    if (!IsShown(*option) || option->get_positional()) continue;
    std::string names;
    for (const std::string& name : option->get_snames()) names += " -s " + name;
    for (const std::string& name : option->get_lnames()) names += " -l " + name;
    text += fmt::format("complete -c boltbeam -n {}{}{} -d {}\n", Quoted(condition), names,
                        option->get_items_expected_max() == 0 ? "" : " -r", Quoted(option->get_description()));
  }
  for (const CLI::App* inner : VisibleCommands(command)) AddFish(program, *inner, text);
}

// In both shells: the longest row of command names at the front of what was typed decides, and `found` are its words.
constexpr std::string_view kBashBody = R"(
_boltbeam() {
  local line=boltbeam found= word i current=${COMP_WORDS[COMP_CWORD]}
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    [[ $word == -* ]] && continue
    _boltbeam_words "$line $word" && line="$line $word"
  done
  _boltbeam_words "$line"
  mapfile -t COMPREPLY < <(compgen -W "$found" -- "$current")
  if [[ $current != -* ]]; then
    while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
  fi
}
complete -o filenames -F _boltbeam boltbeam
)";

constexpr std::string_view kZshBody = R"(
_boltbeam() {
  local line=boltbeam found= i
  for ((i = 2; i < CURRENT; ++i)); do
    [[ ${words[i]} == -* ]] && continue
    _boltbeam_words "$line ${words[i]}" && line="$line ${words[i]}"
  done
  _boltbeam_words "$line"
  compadd -- ${(z)found}
  _files
}
_boltbeam "$@"
)";

/// What both shells share: the words of every row of command names.
std::string WordsFunction(const CLI::App& program) {
  std::string cases;
  AddCases(program, cases);
  return "_boltbeam_words() {\n  case $1 in\n" + cases + "    *) return 1 ;;\n  esac\n}";
}

}  // namespace

std::vector<const CLI::App*> VisibleCommands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

std::string ProgramPage(const CLI::App& program) {
  std::string page = Heading("boltbeam", "audits what a token of an LLM costs the chip that computes it");
  page += ".SH SYNOPSIS\n.B boltbeam\n.I COMMAND\n[\\fIOPTIONS\\fR]\n.SH COMMANDS\n";
  for (const CLI::App* command : VisibleCommands(program)) {
    page += fmt::format(".TP\n.BR boltbeam\\-{} (1)\n{}\n", Escape(command->get_name()),
                        Escape(command->get_description()));
  }
  page += OptionsOf(program);
  return page +
         ".SH EXIT STATUS\n0 fine; 1 failed; 2 a command line that can't be carried out; 3 a measurement was refused "
         "or "
         "unstable; 4 a comparison came out worse.\n";
}

std::string CommandPage(const CLI::App& command) {
  std::string page = Heading("boltbeam\\-" + Escape(command.get_name()), command.get_description());
  page += Synopsis(command) + OptionsOf(command);
  for (const CLI::App* inner : VisibleCommands(command)) {
    page += fmt::format(".SH {}\n{}\n", Escape(FullName(*inner)), Escape(inner->get_description()));
    std::string options = OptionsOf(*inner);
    for (std::size_t at = options.find(".SH "); at != std::string::npos; at = options.find(".SH ", at)) {
      options.replace(at, 4, ".SS ");
    }
    page += options;
  }
  return page + ".SH SEE ALSO\n.BR boltbeam (1)\n";
}

std::string BashCompletion(const CLI::App& program) {
  return "# Completion of boltbeam for bash.\n" + WordsFunction(program) + std::string(kBashBody);
}

std::string ZshCompletion(const CLI::App& program) {
  return "#compdef boltbeam\n# Completion of boltbeam for zsh.\n" + WordsFunction(program) + std::string(kZshBody);
}

std::string FishCompletion(const CLI::App& program) {
  std::string text = "# Completion of boltbeam for fish.\n";
  AddFish(program, program, text);
  return text;
}

}  // namespace boltbeam::app
