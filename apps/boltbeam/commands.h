// The list of commands: one line each for the declaration and for the table.
#pragma once

#include "command.h"

namespace boltbeam::app {

using AddCommand = void (*)(CLI::App&, Globals&);

// Read
void AddInspect(CLI::App& app, Globals& globals);
// Bound
void AddBound(CLI::App& app, Globals& globals);
void AddChip(CLI::App& app, Globals& globals);
void AddChipMeasure(CLI::App& app, Globals& globals);  // becomes a part of `chip`
// Run and account
void AddAudit(CLI::App& app, Globals& globals);
void AddCompare(CLI::App& app, Globals& globals);
void AddBench(CLI::App& app, Globals& globals);
void AddPerplexity(CLI::App& app, Globals& globals);
void AddRun(CLI::App& app, Globals& globals);
// Judge
void AddJudge(CLI::App& app, Globals& globals);
// Kernels
void AddKernel(CLI::App& app, Globals& globals);
// Search
void AddPlan(CLI::App& app, Globals& globals);
void AddSearch(CLI::App& app, Globals& globals);
// Memory
void AddLedger(CLI::App& app, Globals& globals);
// The lab
void AddCard(CLI::App& app, Globals& globals);
void AddFit(CLI::App& app, Globals& globals);
void AddLadder(CLI::App& app, Globals& globals);
void AddPredict(CLI::App& app, Globals& globals);
void AddPrice(CLI::App& app, Globals& globals);
// Set-up
void AddDoctor(CLI::App& app, Globals& globals);
void AddManual(CLI::App& app, Globals& globals);
void AddSynth(CLI::App& app, Globals& globals);

// In the order of `boltbeam --help`.
inline constexpr AddCommand kCommands[] = {
    AddInspect,      //
    AddBound,        //
    AddChip,         //
    AddChipMeasure,  //
    AddRun,          //
    AddPerplexity,   //
    AddBench,        //
    AddAudit,        //
    AddCompare,      //
    AddJudge,        //
    AddKernel,       //
    AddSearch,       //
    AddPlan,         //
    AddLedger,       //
    AddLadder,       //
    AddFit,          //
    AddPredict,      //
    AddCard,         //
    AddPrice,        //
    AddSynth,        //
    AddDoctor,       //
    AddManual,       //
};

}  // namespace boltbeam::app
